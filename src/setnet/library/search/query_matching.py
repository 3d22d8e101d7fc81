"""The people of a query as the engine looks for them, and what its similarities say about each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Hit, KnownPair, RankedItems, Scoring, SearchOptions, SetIndex
from setnet.library.photos import LibraryPhoto, PersonMatch
from setnet.library.recognition.matching import Matching
from setnet.library.recognition.recogniser import Recogniser
from setnet.library.search.answer import GroupTotal, PersonThresholds
from setnet.library.search.query import PhotoQuery
from setnet.library.search.query_person import QueryPerson

Floats = NDArray[np.float32]


class QueryMatching:
    """Recognises the people of one query: which similarities are matches, how sure and how probable.

    A photo's score is the expected number of the people who are in it: each adds the probability that they
    are, as a logistic that is one half where they are there as probably as not. It does not depend on which
    matches are sure. What the user confirmed or refused comes before any similarity.
    """

    def __init__(
        self,
        matching: Matching,
        query: PhotoQuery,
        people: Sequence[QueryPerson],
        without: Sequence[QueryPerson],
    ) -> None:
        self._query = query
        self._people = list(people)
        self.recognisers = [matching.recogniser(person) for person in people]
        self._unwanted = [matching.recogniser(person) for person in without]
        self.vectors = np.stack([r.vector for r in self.recognisers])
        self._least = np.array([self._least_of(r) for r in self.recognisers])
        self._sure = np.array([r.sure for r in self.recognisers])
        self._known = _known_pairs([*people, *without])
        self._scoring = Scoring(
            min(r.steepness for r in self.recognisers),
            tuple(r.even for r in self.recognisers),
            tuple(self._least.tolist()),
            tuple(r.maybe for r in self._unwanted),
        )

    def _least_of(self, recogniser: Recogniser) -> float:
        given = self._query.min_similarity
        if self._query.sure:
            return recogniser.sure if given is None else max(recogniser.sure, given)
        return recogniser.maybe if given is None else given

    @property
    def thresholds(self) -> tuple[PersonThresholds, ...]:
        """From which similarity on each person is surely and maybe recognised."""
        pairs = zip(self._people, self.recognisers, strict=True)
        return tuple(PersonThresholds(person.name, r.sure, r.maybe) for person, r in pairs)

    def options(
        self, k: int, where: Mapping[str, Any] | None, at_least: int, threads: int | None
    ) -> SearchOptions:
        """Return the options of the engine's search for the query's people."""
        return SearchOptions(
            k,
            self._query.mode,
            where=where,
            at_least=at_least,
            only=self._query.only,
            without=np.stack([r.vector for r in self._unwanted]) if self._unwanted else None,
            scoring=self._scoring,
            known=self._known,
            threads=threads,
        )

    def of_one(self, number: int, k: int, where: Mapping[str, Any] | None) -> tuple[Floats, SearchOptions]:
        """Return query and options of a search for the k best sure matches of one person."""
        sure = (float(self._sure[number]),)
        known = {
            photo: [pair._replace(query_element=0) for pair in pairs if pair.query_element == number]
            for photo, pairs in self._known.items()
        }
        mode = "exact" if self._query.mode == "set" else self._query.mode
        scoring = Scoring(self._scoring.w, sure, sure)
        options = SearchOptions(k, mode, where=where, at_least=1, scoring=scoring, known=known)
        return self.vectors[number : number + 1], options

    def paired(self, index: SetIndex, photos: Sequence[str]) -> list[Hit]:
        """Return photos with the pairs of people and faces that they have now."""
        scoring = replace(self._scoring, without=())
        return index.rerank(self.vectors, photos, len(photos), scoring=scoring, known=self._known)

    def matched(self, items: RankedItems) -> NDArray[np.bool_]:
        """Return (items, people): who is in which item, surely or maybe."""
        found: NDArray[np.bool_] = (items.elements >= 0) & (items.similarities >= self._least)
        return found | self.sure(items)

    def sure(self, items: RankedItems) -> NDArray[np.bool_]:
        """Return (items, people): who is surely in which item."""
        found: NDArray[np.bool_] = (items.elements >= 0) & (items.similarities >= self._sure)
        for place, person, element, is_match in self._judged(items):
            if is_match and items.elements[place, person] == element:
                found[place, person] = True
        return found

    def totals(self, items: RankedItems) -> tuple[GroupTotal, ...]:
        """Return how many items have how many of the people, most first, of all that have a match."""
        people = len(self._people)
        all_sure = self.sure(items).sum(axis=1) >= items.matched
        photos = np.bincount(items.matched, minlength=people + 1).tolist()
        sure = np.bincount(items.matched[all_sure], minlength=people + 1).tolist()
        least = max(1, self._query.at_least)
        return tuple(GroupTotal(m, photos[m], sure[m]) for m in range(people, least - 1, -1))

    def matches(
        self, photo: LibraryPhoto, elements: Sequence[int], similarities: Sequence[float]
    ) -> Iterator[PersonMatch]:
        """Yield the people who are in a photo, by the pairs that the engine formed."""
        judged = {(pair.query_element, pair.element): pair for pair in self._known.get(photo.id, ())}
        for number, (face, similarity) in enumerate(zip(elements, similarities, strict=True)):
            if not 0 <= face < len(photo.faces):
                continue
            confirmed = (number, face) in judged  # a refused pair is never formed
            if confirmed or similarity >= self._least[number]:
                stored, recogniser = photo.faces[face], self.recognisers[number]
                probability = 1.0 if confirmed else recogniser.probability(similarity, stored.quality)
                sure = confirmed or similarity >= recogniser.sure
                name = self._people[number].name
                yield PersonMatch(name, similarity, face, stored.box, probability, sure)

    def _judged(self, items: RankedItems) -> Iterator[tuple[int, int, int, bool]]:
        if not self._known:
            return
        for place, name in enumerate(items.ids):
            for person, element, is_match in self._known.get(name, ()):
                if person < len(self._people):
                    yield place, person, element, is_match


def _known_pairs(people: Sequence[QueryPerson]) -> dict[str, list[KnownPair]]:
    """Return what is known of faces, by photo; people are numbered as the engine's query has them."""
    known: dict[str, list[KnownPair]] = defaultdict(list)
    for number, person in enumerate(people):
        for photo, face in sorted(person.refused):
            known[photo].append(KnownPair(number, face, False))
        for photo, face in sorted(person.confirmed - person.refused):
            known[photo].append(KnownPair(number, face, True))
    return dict(known)
