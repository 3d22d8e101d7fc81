"""Who is in photos with whom, and how often: pairs of saved people, and sets of three and more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.library.person import Who
from setnet.library.query import PhotoQuery, QueryPerson
from setnet.library.search import QueryMatcher

if TYPE_CHECKING:
    from setnet.library.library import Library

LARGEST_SET = 5
_MANY, _LARGEST_OF_MANY = 12, 3  # a photo with more people has too many sets of five


@dataclass(frozen=True, slots=True)
class PeopleTogether:
    """People and the number of photos that surely show all of them."""

    people: tuple[str, ...]
    photos: int


def find_together(
    library: Library, name: Who | None = None, *, min_people: int = 2, min_photos: int = 1
) -> list[PeopleTogether]:
    """Return sets of two to five saved people who are surely together in photos, the most frequent first.

    With a `name`, only sets with that person. Of a photo with more than twelve people, sets of up to three
    count.
    """
    people = [library.person(person.id) for person in library.people if person.examples]
    chosen = None if name is None else library.people.get(name).name
    counts = Counter[tuple[int, ...]]()
    for members, photos in _patterns(*_appearances(library, people)):
        largest = LARGEST_SET if len(members) <= _MANY else _LARGEST_OF_MANY
        for size in range(min_people, largest + 1):
            for some in combinations(members, size):
                counts[some] += photos
    found = [
        PeopleTogether(tuple(people[number].name for number in some), photos)
        for some, photos in counts.items()
        if photos >= min_photos
    ]
    found = [one for one in found if chosen is None or chosen in one.people]
    return sorted(found, key=lambda one: (-one.photos, len(one.people), one.people))


def _appearances(library: Library, people: list[QueryPerson]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (photo, person) of all sure matches; a face of a photo counts for one person."""
    index = library.set_index
    photos, faces, whose, scores = ([np.zeros(0, np.int64)] for _ in range(4))
    for number, person in enumerate(people):
        matcher = QueryMatcher(library.matching, PhotoQuery([person], sure=True), [person], [])
        vector, options = matcher.of_one(0, None)
        found = index.search(vector, max(1, len(index)), **options)
        ids = np.array(found.ids, np.int64) if found.ids else np.zeros(0, np.int64)
        confirmed = {int(photo) for photo, _ in person.confirmed}
        known = np.isin(ids, list(confirmed))
        photos.append(ids)
        faces.append(found.elements[:, 0].astype(np.int64))
        scores.append(np.where(known, 2e6, found.similarities[:, 0] * 1e6).astype(np.int64))
        whose.append(np.full(len(ids), number))
    photo, face, person_of, score = map(np.concatenate, (photos, faces, whose, scores))
    order = np.lexsort((-score, face, photo))
    photo, face, person_of = photo[order], face[order], person_of[order]
    is_taken = np.zeros(len(photo), bool)  # by somebody whom the face resembles more
    is_taken[1:] = (photo[1:] == photo[:-1]) & (face[1:] == face[:-1]) & (face[1:] >= 0)
    return photo[~is_taken], person_of[~is_taken]


def _patterns(photos: NDArray[np.int64], people: NDArray[np.int64]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield who is together in photos, and in how many just these: far fewer than there are photos."""
    order = np.lexsort((people, photos))
    photos, people = photos[order], people[order]
    start = np.flatnonzero(np.concatenate([[True], photos[1:] != photos[:-1]])) if len(photos) else photos
    size = np.diff(np.append(start, len(photos)))
    for n in np.unique(size[size >= 2]).tolist():
        rows = people[start[size == n][:, None] + np.arange(n)]
        members, counts = np.unique(rows, axis=0, return_counts=True)
        yield from zip(map(tuple, members.tolist()), counts.tolist(), strict=True)
