"""Run a query for photos on the index, and join the hits with the photos' records."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.index import Hit, SetIndex
from setnet.library.search.conditions import Conditions
from setnet.library.search.query import PersonLike, PhotoQuery
from setnet.library.search.query_person import QueryPerson, with_unique_names
from setnet.library.store.photo_catalog import PhotoCatalog
from setnet.library.store.records import LibraryPhoto, PathText, PersonMatch, PhotoHit
from setnet.sets import Logistic

_SURE = 0.9  # more than a match: a remark that is often wrong is soon not read any more


@dataclass(frozen=True, slots=True)
class Answer:
    """The ranked photos of a query, with timings and warnings.

    `searched` counts the photos in the index; `seconds` has the time spent on the query's faces, the
    engine's search and reading the photos' records.
    """

    hits: tuple[PhotoHit, ...]
    people: tuple[QueryPerson, ...]
    without: tuple[QueryPerson, ...]
    searched: int
    seconds: dict[str, float]
    warnings: tuple[str, ...]

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, Any]:
        """Return the answer as values that JSON can hold; `path_text` writes the paths of photos."""
        return {
            "hits": [hit.to_dict(path_text) for hit in self.hits],
            "people": [person.name for person in self.people],
            "without": [person.name for person in self.without],
            "searched": self.searched,
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
            "warnings": list(self.warnings),
        }


def answer(
    index: SetIndex,
    catalog: PhotoCatalog,
    query: PhotoQuery,
    resolved: Callable[[PersonLike, int], QueryPerson],
) -> Answer:
    """Answer a query; `resolved` gives its persons, each with their number, a name and descriptors."""
    begin = perf_counter()
    everyone = [resolved(p, n) for some in (query.people, query.without) for n, p in enumerate(some, 1)]
    everyone = with_unique_names(everyone)
    people, without = everyone[: len(query.people)], everyone[len(query.people) :]
    start = perf_counter()
    unfinished = {str(photo_id) for photo_id, _, _ in catalog.unfinished()}
    conditions = query.conditions or Conditions()
    missing = conditions.unmet_by(catalog)
    descriptors = [person.descriptors for person in people]
    found = (
        []
        if missing
        else index.search(
            descriptors,
            k=query.offset + query.k + len(unfinished),
            mode=query.mode,
            where=conditions.where(),
            at_least=query.at_least,
            only=query.only,
            without=[person.descriptors for person in without] or None,
            threads=query.threads,
        )
    )
    searched = perf_counter()
    page = [hit for hit in found if hit.id not in unfinished][query.offset :]
    photos = catalog.photos([hit.id for hit in page])
    page = [hit for hit in page if hit.id in photos][: query.k]
    if query.mode == "set":
        page = _with_matches(page, index, descriptors)
    threshold = index.logistic.threshold
    return Answer(
        hits=tuple(_photo_hit(hit, photos[hit.id], people, threshold) for hit in page),
        people=tuple(people),
        without=tuple(without),
        searched=len(index),
        seconds={
            "people": start - begin,
            "search": searched - start,
            "records": perf_counter() - searched,
        },
        warnings=(
            *(note for person in everyone for note in person.notes),
            *look_alikes(people, index.logistic),
            *missing,
        ),
    )


def look_alikes(people: Sequence[QueryPerson], logistic: Logistic) -> list[str]:
    """Return a warning for each pair of query people who are very probably one person."""
    centres = [_centre(person) for person in people]
    warnings = []
    for a in range(len(people)):
        for b in range(a + 1, len(people)):
            similarity = float(centres[a] @ centres[b])
            if float(logistic.probability(similarity)) >= _SURE:
                warnings.append(
                    f"{people[a].name} and {people[b].name} look like one and the same person "
                    f"(similarity {similarity:.2f}): one face can only count for one of them"
                )
    return warnings


def _centre(person: QueryPerson) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = person.descriptors.mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)


def _with_matches(hits: Sequence[Hit], index: SetIndex, descriptors: list[NDArray[np.float32]]) -> list[Hit]:
    """Pair people with faces in hits of `set` mode, which compares no faces; scores stay as they are."""
    try:
        exact = {hit.id: hit for hit in index.rerank(descriptors, [hit.id for hit in hits], len(hits))}
    except InvalidInputError:  # a photo was removed since the search
        exact = {}
    return [replace(hit, matches=exact[hit.id].matches) if hit.id in exact else hit for hit in hits]


def _photo_hit(hit: Hit, photo: LibraryPhoto, people: Sequence[QueryPerson], threshold: float) -> PhotoHit:
    matches = tuple(
        PersonMatch(
            person=people[int(match.query_element)].name,
            similarity=match.similarity,
            face=match.element,
            box=photo.faces[match.element].box,
        )
        for match in hit.matches
        if match.similarity >= threshold and match.element < len(photo.faces)
    )
    return PhotoHit(photo, hit.score, matches)
