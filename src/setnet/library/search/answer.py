"""Ask the index for photos of a set of people and tell what was found in the user's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, one_of
from setnet.index import Hit, Match, SetIndex
from setnet.library.search.conditions import Conditions
from setnet.library.search.query_person import QueryPerson
from setnet.library.store.photo_catalog import PhotoCatalog
from setnet.library.store.records import LibraryPhoto, PersonMatch, PhotoHit
from setnet.sets import Logistic

__all__ = ["Answer", "answer", "look_alikes"]

MODES = ("exact", "fast", "set")  # the engine's others are not for photos
_SURE = 0.9  # more than a match: a remark that is often wrong is soon not read any more


@dataclass(frozen=True, slots=True)
class Answer:
    """A ranked answer with what a user wants to know about it.

    `searched` counts the photos in the index; `seconds` tells how long finding the query's faces,
    the engine's search and reading the photos' records took.
    """

    hits: tuple[PhotoHit, ...]
    people: tuple[QueryPerson, ...]
    without: tuple[QueryPerson, ...]
    searched: int
    seconds: dict[str, float]
    warnings: tuple[str, ...]


def answer(
    index: SetIndex,
    catalog: PhotoCatalog,
    people: Sequence[QueryPerson],
    without: Sequence[QueryPerson],
    *,
    k: int,
    offset: int,
    mode: str,
    at_least: int,
    only: bool,
    conditions: Conditions,
    threads: int | None = None,
) -> Answer:
    """Search and join the hits with the photos' records."""
    if not people:
        raise InvalidInputError("nobody to look for: name a person or give a photo of one")
    if at_least > len(people):
        raise InvalidInputError(f"at least {at_least} of {len(people)} people cannot be met")
    if mode not in MODES:
        raise one_of("mode", mode, MODES)
    unfinished = {str(photo_id) for photo_id, _, _ in catalog.unfinished()}
    start = perf_counter()
    missing = conditions.unmet_by(catalog)
    found = (
        []
        if missing
        else index.search(
            [p.descriptors for p in people],
            k=offset + k + len(unfinished),
            mode=mode,
            where=conditions.where(),
            at_least=at_least,
            only=only,
            without=[p.descriptors for p in without] or None,
            threads=threads,
        )
    )
    searched = perf_counter()
    page = [hit for hit in found if hit.id not in unfinished][offset:]
    photos = catalog.photos([hit.id for hit in page])
    threshold = index.logistic.threshold
    centres = np.stack([_centre(person) for person in people])
    hits = [
        _photo_hit(_with_matches(hit, index, centres), photos[hit.id], people, threshold)
        for hit in page
        if hit.id in photos
    ]
    return Answer(
        hits=tuple(hits[:k]),
        people=tuple(people),
        without=tuple(without),
        searched=len(index),
        seconds={"search": searched - start, "records": perf_counter() - searched},
        warnings=tuple(look_alikes(people, index.logistic) + missing),
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


def _with_matches(hit: Hit, index: SetIndex, centres: NDArray[np.float32]) -> Hit:
    """Pair people with faces for a hit of `set` mode, which looked at no faces; the score stays its own."""
    if hit.matches:
        return hit
    try:
        similarities = centres @ index.elements(hit.id).T
    except InvalidInputError:  # removed since the search
        return hit
    pairs: list[Match] = []
    for flat in np.argsort(-similarities, axis=None):
        person, element = divmod(int(flat), similarities.shape[1])
        if all(person != pair.person and element != pair.element for pair in pairs):
            pairs.append(Match(person, element, float(similarities[person, element])))
    return replace(hit, matches=tuple(sorted(pairs, key=lambda pair: pair.person)))


def _photo_hit(hit: Hit, photo: LibraryPhoto, people: Sequence[QueryPerson], threshold: float) -> PhotoHit:
    matches = []
    for match in hit.matches:
        if match.similarity >= threshold and match.element < len(photo.faces):
            matches.append(
                PersonMatch(
                    person=people[int(match.person)].name,
                    similarity=match.similarity,
                    face=match.element,
                    box=photo.faces[match.element].box,
                )
            )
    return PhotoHit(photo, hit.score, tuple(matches))
