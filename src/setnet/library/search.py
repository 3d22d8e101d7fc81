"""Rank the photos of a query once, and read pages of them without searching again."""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Hit, Mode, SearchOptions, SetIndex
from setnet.engine.query import CANDIDATES, KnownPair, Scoring
from setnet.engine.results import RankedItems
from setnet.errors import InvalidInputError, UnknownAttributeError
from setnet.library.answer import Answer, GroupTotal, PersonThresholds
from setnet.library.person_matcher import PersonMatcher, PersonMatchers
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photos import LibraryPhoto, PathText, PersonMatch, PhotoHit
from setnet.library.query import (
    Conditions,
    PersonLike,
    PhotoQuery,
    QueryPerson,
    with_unique_names,
)
from setnet.library.stacks import DisjointSets
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library.library import Library
    from setnet.library.person import Person


def look_alikes(people: Sequence[QueryPerson], matchers: Sequence[PersonMatcher]) -> list[str]:
    """Return one warning of all query people who are very probably one person, if there are any."""
    pairs = [
        (a, b)
        for a, b in combinations(range(len(people)), 2)
        if matchers[a].vector @ matchers[b].vector >= max(matchers[a].sure, matchers[b].sure)
    ]
    if not pairs:
        return []
    sets = DisjointSets[int]()
    for pair in pairs:
        sets.link(*pair)
    groups = [[people[number].name for number in sorted(group)] for group in sets.groups()]
    alike = [f"{', '.join(others)} and {last}" for *others, last in groups]
    also = "".join(f", and so do {names}" for names in alike[1:])
    return [f"{alike[0]} look like one and the same person{also}: one face can only count for one of them"]


Floats = NDArray[np.float32]


class QueryMatcher:
    """Recognises the people of one query: which similarities are matches, how sure and how probable.

    A photo's score is the expected number of the people who are in it: each adds the probability that they
    are, as a logistic that is one half where, on the average of the people, they are there as probably as
    not. It does not depend on which matches are sure. What the user confirmed or rejected comes before any
    similarity.
    """

    def __init__(
        self,
        matchers: PersonMatchers,
        query: PhotoQuery,
        people: Sequence[QueryPerson],
        without: Sequence[QueryPerson],
    ) -> None:
        self._query = query
        self._people = list(people)
        self.matchers = [matchers.matcher(person) for person in people]
        self._excluded = [matchers.matcher(person) for person in without]
        self.vectors = np.stack([r.vector for r in self.matchers])
        self._thresholds = np.array([self._find_threshold(r) for r in self.matchers])
        self._sure = np.array([r.sure for r in self.matchers])
        # A group is a guess: it counts where guesses do, and who must not be there is not there by a guess.
        self._known = _known_pairs([*people, *without], with_groups=not query.sure)
        # A face goes to the person whose threshold it exceeds by most: by the distance from `even`, somebody
        # whom it does not match could take it from the one whom it does, and the photo would not be found.
        even = self._thresholds + np.mean([r.even for r in self.matchers] - self._thresholds)
        self._scoring = Scoring(
            min(r.steepness for r in self.matchers),
            tuple(even.tolist()),
            tuple(self._thresholds.tolist()),
            tuple(r.maybe for r in self._excluded),
        )

    def _find_threshold(self, matcher: PersonMatcher) -> float:
        given = self._query.min_similarity
        if self._query.sure:
            return matcher.sure if given is None else max(matcher.sure, given)
        return matcher.maybe if given is None else given

    @property
    def thresholds(self) -> tuple[PersonThresholds, ...]:
        """From which similarity on each person is surely and maybe recognised."""
        pairs = zip(self._people, self.matchers, strict=True)
        return tuple(PersonThresholds(person.name, r.sure, r.maybe) for person, r in pairs)

    def options(self, where: Mapping[str, Any] | None, at_least: int, threads: int | None) -> SearchOptions:
        """Return the options of the engine's search for the query's people."""
        return SearchOptions(
            where=where,
            at_least=at_least,
            only=self._query.only,
            without=np.stack([r.vector for r in self._excluded]) if self._excluded else None,
            scoring=self._scoring,
            known=self._known,
            threads=threads,
        )

    def of_one(self, number: int, where: Mapping[str, Any] | None) -> tuple[Floats, SearchOptions]:
        """Return query and options of a search for the best sure matches of one person."""
        sure = (float(self._sure[number]),)
        known = {
            photo: [pair._replace(query_element=0) for pair in pairs]
            for photo, pairs in _known_pairs([self._people[number]], with_groups=False).items()
        }
        scoring = Scoring(self._scoring.w, sure, sure)
        options = SearchOptions(where=where, at_least=1, scoring=scoring, known=known)
        return self.vectors[number : number + 1], options

    def paired(self, index: SetIndex, photos: Sequence[str]) -> list[Hit]:
        """Return photos with the pairs of people and faces that they have now."""
        scoring = replace(self._scoring, without=())
        found = index.rerank(self.vectors, photos, len(photos), scoring=scoring, known=self._known)
        return found.hits()

    def matched(self, items: RankedItems) -> NDArray[np.bool_]:
        """Return (items, people): who is in which item, surely or maybe."""
        found: NDArray[np.bool_] = (items.elements >= 0) & (items.similarities >= self._thresholds)
        for place, person, element, is_match in self._judgements(items):
            if is_match and element in (-1, items.elements[place, person]):
                found[place, person] = True
        return found

    def sure(self, items: RankedItems) -> NDArray[np.bool_]:
        """Return (items, people): who is surely in which item."""
        found: NDArray[np.bool_] = (items.elements >= 0) & (items.similarities >= self._sure)
        for place, person, element, is_match in self._judgements(items):
            if element == -1:
                found[place, person] = True
            elif is_match and items.elements[place, person] == element:
                found[place, person] |= (items.ids[place], element) in self._people[person].confirmed
        return found

    def totals(self, items: RankedItems) -> tuple[GroupTotal, ...]:
        """Return how many items have how many of the people, most first, of all that have a match."""
        people = len(self._people)
        all_sure = self.sure(items).sum(axis=1) >= items.matched
        photos = np.bincount(items.matched, minlength=people + 1).tolist()
        sure = np.bincount(items.matched[all_sure], minlength=people + 1).tolist()
        at_least = max(1, self._query.at_least)
        return tuple(GroupTotal(m, photos[m], sure[m]) for m in range(people, at_least - 1, -1))

    def matches(
        self, photo: LibraryPhoto, elements: Sequence[int], similarities: Sequence[float]
    ) -> Iterator[PersonMatch]:
        """Yield the people who are in a photo, by the pairs that the engine formed."""
        judged = {(pair.query_element, pair.element): pair for pair in self._known.get(photo.id, ())}
        for number, (face, similarity) in enumerate(zip(elements, similarities, strict=True)):
            person, matcher = self._people[number], self.matchers[number]
            is_tagged = photo.id in person.tagged
            if not 0 <= face < len(photo.faces):
                if is_tagged:
                    yield PersonMatch(person.name, 0.0, None, person.tagged[photo.id], 1.0, True)
                continue
            known = (number, face) in judged  # a rejected pair is never formed
            if known or similarity >= self._thresholds[number]:
                confirmed = is_tagged or (known and (photo.id, face) in person.confirmed)
                stored = photo.faces[face]
                probability = 1.0 if confirmed else matcher.probability(similarity, stored.quality)
                sure = confirmed or similarity >= matcher.sure
                yield PersonMatch(person.name, similarity, face, stored.box, probability, sure)

    def _judgements(self, items: RankedItems) -> Iterator[tuple[int, int, int, bool]]:
        if not self._known:
            return
        for place, name in enumerate(items.ids):
            for person, element, is_match in self._known.get(name, ()):
                if person < len(self._people):
                    yield place, person, element, is_match


def _known_pairs(people: Sequence[QueryPerson], *, with_groups: bool) -> dict[str, list[KnownPair]]:
    """Return what is known of faces, by photo; people are numbered as the engine's query has them."""
    known: dict[str, list[KnownPair]] = defaultdict(list)
    for number, person in enumerate(people):
        for photo, face in sorted(person.rejected):
            known[photo].append(KnownPair(number, face, False))
        matches = person.confirmed | person.grouped if with_groups else person.confirmed
        for photo, face in sorted(matches - person.rejected):
            known[photo].append(KnownPair(number, face, True))
        for photo in person.tagged:
            known[photo].append(KnownPair(number, -1, True))
    return dict(known)


_GROWTH = 2  # times what is ranked so far, where a page waits for more: a few searches serve all pages


class Ranking:
    """The photos of a query, best first, with their scores as of the moment they were ranked.

    Pages follow each other without gap or repeat, whatever is indexed or removed between them: photos
    removed since are left out, and those added since may follow the ones that were ranked before. A page
    shows the records of its photos as they are when it is read.

    The first search ranks what `query` asks for and one photo more; a page further down has more of them
    ranked, `max_photos` at most.
    """

    def __init__(
        self,
        index: SetIndex,
        catalog: PhotoCatalog,
        matchers: PersonMatchers,
        query: PhotoQuery,
        resolve: Callable[[PersonLike, int], QueryPerson],
        max_photos: int | None = None,
    ) -> None:
        begin = perf_counter()
        both = (query.people, query.without)
        everyone = with_unique_names([resolve(p, n) for some in both for n, p in enumerate(some, 1)])
        self.query = query
        self.people, self.without = everyone[: len(query.people)], everyone[len(query.people) :]
        self.matcher = QueryMatcher(matchers, query, self.people, self.without)
        start = perf_counter()
        self._index, self._catalog = index, catalog
        self._extending = threading.Lock()
        self._conditions = query.conditions or Conditions()
        missing = self._conditions.unmet_by(catalog)
        self.commit = catalog.commit()  # before the search: what changes during it is noticed
        self.searched = len(index)
        self.faces = self.matcher.matchers[0].faces
        self._max_photos = sys.maxsize if max_photos is None else max_photos
        self.totals: tuple[GroupTotal, ...] | None = None
        self._items, self._is_complete = RankedItems.none(len(self.people)), True
        if not missing:
            self._rank(min(query.offset + query.k + 1, self._max_photos))
        elif self._counts:
            self.totals = self.matcher.totals(self._items)
        unsure: dict[str, str] = {}
        filtered: list[str] = []
        if not missing and self.faces:
            unsure, filtered = self._without_sure_match()
        self.unsure = tuple(unsure)
        self._seconds = {"people": start - begin, "search": perf_counter() - start}
        self._warnings = (
            *(note for person in everyone for note in person.notes),
            *look_alikes(self.people, self.matcher.matchers),
            *missing,
            *unsure.values(),
            *filtered,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        faces = sum(person.descriptors.nbytes for person in (*self.people, *self.without))
        return self._items.nbytes + faces

    def page(self, offset: int, k: int) -> Answer:
        """Return the photos from number `offset` (from 0) on, k of them or fewer when some were removed."""
        start = perf_counter()
        has_searched = self._reach(offset + k + 1)  # one more: is there a next page?
        searched = perf_counter()
        items = self._items.take(slice(offset, offset + k))
        photos = self._catalog.get_many(items.ids)
        # After the records were read: those of an unchanged library have the faces that were matched.
        if self.query.mode == "set" or self._catalog.commit() != self.commit:
            items = self._matched_now(items, photos)
        hits = tuple(self._photo_hits(items, photos))
        seconds = {
            "people": 0.0,
            "search": searched - start if has_searched else 0.0,
            "records": perf_counter() - searched,
        }
        if offset == self.query.offset:
            seconds |= self._seconds
        return Answer(
            hits=hits,
            people=tuple(self.people),
            without=tuple(self.without),
            searched=self.searched,
            seconds=seconds,
            warnings=self._warnings,
            totals=self.totals,
            faces=self.faces,
            thresholds=self.matcher.thresholds,
            unsure=self.unsure,
        )

    def has_more(self, end: int) -> bool:
        """Return whether photos follow the first `end`."""
        self._reach(end + 1)
        return len(self._items) > end

    def _reach(self, end: int) -> bool:
        """Rank at least `end` photos, or all there are; return whether that took a search."""
        if len(self._items) >= end or self._is_complete:
            return False
        with self._extending:  # what another thread is searching for is waited for
            ranked = len(self._items)
            if ranked < end and not self._is_complete:
                depth = min(max(end, _GROWTH * ranked), self._max_photos)
                found = self._search(depth, self.query.at_least, self.query.threads)
                # The same again and more; after a change of the library some may have moved, up or away.
                self._items = self._items.followed_by(found).first(self._max_photos)
                self._is_complete = self._is_all(found, depth)
        return True

    def _is_all(self, found: RankedItems, depth: int) -> bool:
        return len(found) < depth or depth >= min(self._max_photos, len(self._index))

    @property
    def _counts(self) -> bool:
        return self.query.totals and self.query.mode != "set"

    def _rank(self, depth: int) -> None:
        """Search for the first time, and count groups in the same search where it finds all of them."""
        query = self.query  # `fast` finds no more than its candidates
        everything = max(depth, self.searched if query.mode == "exact" else CANDIDATES)
        if query.newest or (self._counts and query.at_least):
            depth = everything
        found = self._search(depth, query.at_least, query.threads)
        if self._counts:
            matched = found if query.at_least else self._search(everything, 1, query.threads)
            self.totals = self.matcher.totals(matched)
        self._items, self._is_complete = found.first(self._max_photos), self._is_all(found, depth)
        if query.newest:
            # of those with most of the people the latest taken first
            ids = self._items.ids
            place = {photo: number for number, photo in enumerate(self._catalog.newest_first(ids))}
            dates = [place.get(photo, len(place)) for photo in ids]
            order = np.lexsort((np.array(dates), -self._items.matched))
            self._items, self._is_complete = self._items.take(order), True

    def _search(self, k: int, at_least: int, threads: int | None) -> RankedItems:
        options = self.matcher.options(self._conditions.where(), at_least, threads)
        mode = cast(Mode, self.query.mode)  # which the query has checked
        return self._rank_photos(self.matcher.vectors, k, mode, options, self._conditions)

    def _rank_photos(
        self, vectors: Floats, k: int, mode: Mode, options: SearchOptions, conditions: Conditions
    ) -> RankedItems:
        """Search for items that are photos by now and meet the conditions that `where` cannot say."""
        left_out = conditions.left_out(self._catalog)
        if options.get("only"):
            left_out |= self._catalog.tagged_with_others({person.id for person in self.people})
        if len(self._index) != self._catalog.finished()[0]:  # some are being stored or removed
            photos = {photo for photo, _ in self._catalog.contents()}
            left_out |= {item.id for item in self._index} - photos
        try:
            found = self._index.search(vectors, k + len(left_out), mode, **options)
        except UnknownAttributeError:  # conditions are our own: there is no such photo, or none at all
            return RankedItems.none(len(vectors))
        if left_out:
            ready = [place for place, name in enumerate(found.ids) if name not in left_out]
            found = found.take(np.array(ready[:k], np.int64))
        return found

    def _without_sure_match(self) -> tuple[dict[str, str], list[str]]:
        """Return warnings by name for people of whom no face is surely theirs, and what conditions left out.

        Who is surely in the library, but in no photo that meets the conditions, is not missing there.
        """
        sure = self.matcher.sure(self._items).any(axis=0)
        follow = np.asarray(self.matcher.matched(self._items).any(axis=0))
        unsure: dict[str, str] = {}
        filtered: list[str] = []
        for number in np.flatnonzero(~sure).tolist():
            if self._sure_photos(number, self._conditions, 1):
                continue
            name = self.people[number].name
            is_guessed = follow[number] or (len(self._items) and self.query.mode == "set")
            rest = "; the following are guesses" if is_guessed else ""
            photos = self._sure_photos(number, Conditions(), self.searched) if str(self._conditions) else 0
            if photos:
                where = f"in none that meets the conditions ({self._conditions})"
                filtered.append(f"{name} is surely in {pluralise(photos, 'photo')}, but {where}{rest}")
            else:
                unsure[name] = f"no sure match of {name} among {pluralise(self.faces, 'face')}{rest}"
        return unsure, filtered

    def _sure_photos(self, number: int, conditions: Conditions, max_photos: int) -> int:
        vector, options = self.matcher.of_one(number, conditions.where())
        mode: Mode = "fast" if self.query.mode == "fast" else "exact"
        return len(self._rank_photos(vector, max_photos, mode, options, conditions))

    def _matched_now(self, items: RankedItems, photos: Mapping[str, LibraryPhoto]) -> RankedItems:
        """Pair people with the faces that photos have now; the scores stay as they were ranked."""
        elements, similarities = np.full_like(items.elements, -1), np.zeros_like(items.similarities)
        place = {name: number for number, name in enumerate(items.ids) if name in photos}
        with suppress(InvalidInputError):  # a photo was removed a moment ago
            for hit in self.matcher.paired(self._index, list(place)):
                for match in hit.matches:
                    at = place[hit.id], int(match.query_element)
                    elements[at], similarities[at] = match.element, match.similarity
        return replace(items, elements=elements, similarities=similarities)

    def _photo_hits(self, items: RankedItems, photos: Mapping[str, LibraryPhoto]) -> Iterator[PhotoHit]:
        """Yield the items that are photos still; straight from the arrays, as a page has many of them."""
        scores, elements = items.scores.tolist(), items.elements.tolist()
        pairs = zip(items.ids, scores, elements, items.similarities.tolist(), strict=True)
        for photo_id, score, of_photo, similarities in pairs:
            photo = photos.get(photo_id)
            if photo is not None and max(of_photo) < len(photo.faces):
                yield PhotoHit(photo, score, tuple(self.matcher.matches(photo, of_photo, similarities)))


class PersonPhoto(NamedTuple):
    """A photo with a person in it; `sure` says that the face is surely theirs, was confirmed, or is a tag's.

    `face` is None where a tag says that the person is there, and no face is theirs.
    """

    photo: LibraryPhoto
    face: int | None
    sure: bool

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, Any]:
        """Return the photo as values that JSON can hold."""
        return self.photo.to_dict(path_text) | {"face": self.face, "sure": self.sure}


@dataclass(frozen=True, slots=True)
class PersonPhotos:
    """Some of the photos of a person, the latest taken first, and how many there are in all, and surely."""

    photos: tuple[PersonPhoto, ...]
    total: int
    sure: int


def photos_of_person(library: Library, person: Person, offset: int, limit: int | None) -> PersonPhotos:
    """Return the photos that a search for a person finds, or what is known of one without examples.

    Photos of no known time come last.
    """
    if person.examples:
        everything = max(1, len(library.set_index))
        hits = library.search(PhotoQuery([library.person(person.id)], k=everything)).hits
        found = {hit.photo.id: (match.face, match.sure) for hit in hits for match in hit.matches}
    else:
        known = library.people.known_faces(person)
        found = {photo: (face, False) for photo, face in sorted(known.grouped, reverse=True)}
        found |= {photo: (face, True) for photo, face in sorted(known.confirmed, reverse=True)}
        found |= dict.fromkeys(known.tagged, (None, True))
    order = library.photos.newest_first(found)
    page = order[offset : None if limit is None else offset + limit]
    photos = library.photos.get_many(page)
    sure = sum(found[photo][1] for photo in order)
    return PersonPhotos(
        tuple(PersonPhoto(photos[i], *found[i]) for i in page if i in photos), len(order), sure
    )
