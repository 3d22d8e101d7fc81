"""Where the saved people appear, everybody in one pass: the number of photos of each, and who is together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.person import Who
from setnet.library.query import QueryPerson, saved_people
from setnet.library.schema import FACES

if TYPE_CHECKING:
    from setnet.library.library import Library

Ints = NDArray[np.int64]
LARGEST_SET = 5
_MANY, _LARGEST_OF_MANY = 12, 3  # a photo with more people has too many sets of five
_ROUNDING = 1e-5  # of similarities in float32; what is so near to a threshold is computed again in float64
_ITEMS, _PEOPLE = 4096, 400  # are compared at a time: some 20 MB of similarities
_KNOWN = 2.0  # the similarity of a face that is known to be somebody's: more than any


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
    uid = None if name is None else library.people.get(name).id
    people = saved_people(library._database)
    only = next((number for number, person in enumerate(people) if person.id == uid), None)
    found = _one_person_per_face(find_appearances(library, people, sure=True, only=only))
    counts = Counter[tuple[int, ...]]()
    for members, photos in _patterns(found.photo, found.person):
        largest = LARGEST_SET if len(members) <= _MANY else _LARGEST_OF_MANY
        for size in range(min_people, largest + 1):
            for some in combinations(members, size):
                if only is None or only in some:
                    counts[some] += photos
    together = [
        PeopleTogether(tuple(people[number].name for number in some), photos)
        for some, photos in counts.items()
        if photos >= min_photos
    ]
    return sorted(together, key=lambda one: (-one.photos, len(one.people), one.people))


class _Counted(NamedTuple):
    """Numbers of photos by the ids of people, and what they were counted from."""

    commit: int
    photos: tuple[int, ...]  # another one when the photos are others
    people: dict[str, QueryPerson]
    counts: dict[str, int]


class PhotoCounts:
    """In how many photos each saved person is; whom no change concerns is not counted again."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._last = _Counted(0, (), {}, {})  # replaced as a whole: threads share it

    def latest(self) -> dict[str, int]:
        """Return the number of photos by the ids of people."""
        library, last = self._library, self._last
        commit = library.photos.commit()
        if commit and commit == last.commit:
            return last.counts
        photos, faces = library.photos.finished()
        state = (library.set_index.generation, photos, faces)
        people = {str(person.id): person for person in saved_people(library._database)}
        known = last.people if state == last.photos else {}
        changed = [
            uid for uid, person in people.items() if uid not in known or not _is_same(known[uid], person)
        ]
        counts = {uid: last.counts.get(uid, 0) for uid in people}
        if changed:
            found = find_appearances(library, [people[uid] for uid in changed], sure=False)
            pairs = np.unique(np.stack([found.person, found.photo]), axis=1)
            counted = np.bincount(pairs[0], minlength=len(changed)).tolist()
            counts |= dict(zip(changed, counted, strict=True))
        if photos == len(library.set_index):  # none is being stored or removed just now
            self._last = _Counted(commit, state, people, counts)
        return counts


def _is_same(one: QueryPerson, other: QueryPerson) -> bool:
    """Return whether a person has the same faces as another time."""
    return np.array_equal(one.descriptors, other.descriptors) and all(
        getattr(one, name) == getattr(other, name) for name in ("confirmed", "rejected", "grouped", "tagged")
    )


class Appearances(NamedTuple):
    """Who is in which photo: arrays with one entry for each face of a person, or tag without a face."""

    photo: Ints
    face: Ints  # the number of the face in the photo; -1 for a tag
    person: Ints  # their place among the people that were looked for
    similarity: NDArray[np.float64]

    def take(self, which: NDArray[np.generic]) -> Appearances:
        """Return the chosen entries."""
        return Appearances(*(column[which] for column in self))


def find_appearances(
    library: Library, people: Sequence[QueryPerson], *, sure: bool, only: int | None = None
) -> Appearances:
    """Return where people are, as searches for each of them alone find them: all, or only `sure` matches.

    `only` is the place of one of the people: photos without that person may be left out.
    """
    vectors = np.zeros((len(people), library.dim), np.float32)
    thresholds = np.full(len(people), np.inf)
    for number, person in enumerate(people):
        if not len(person.descriptors):
            continue
        with suppress(InvalidInputError):  # damaged examples find nobody
            matcher = library._matchers.matcher(person)
            vectors[number], thresholds[number] = matcher.vector, matcher.sure if sure else matcher.maybe
    known = _known_appearances(people, with_groups=not sure)
    parts, items = [known], [np.empty(0, np.int64)]
    size = max(1, min(_ITEMS, _ITEMS * _PEOPLE // max(1, len(people))))
    for block in library.set_index.blocks(size):
        ids = np.array([int(name) if name.isdecimal() else -1 for name in block.ids], np.int64)
        items.append(ids)
        photo = np.repeat(ids, block.counts)
        face = np.arange(len(photo)) - np.repeat(np.cumsum(block.counts) - block.counts, block.counts)
        elements = block.elements
        if only is not None:
            is_there = elements @ vectors[only] >= thresholds[only] - _ROUNDING
            rows = np.isin(photo, np.concatenate([photo[is_there], known.photo[known.person == only]]))
            photo, face, elements = photo[rows], face[rows], elements[rows]
        who, row = np.nonzero(vectors @ elements.T >= (thresholds - _ROUNDING)[:, None])
        exact = np.einsum("ij,ij->i", vectors[who].astype(np.float64), elements[row])
        found = Appearances(photo[row], face[row], who, exact)
        parts.append(found.take(exact >= thresholds[who]))
    found = Appearances(*map(np.concatenate, zip(*parts, strict=True)))
    stored = np.concatenate(items)
    if len(stored) != library.photos.finished()[0]:  # some are being stored or removed
        ready = np.array([int(photo) for photo, _ in library.photos.contents()], np.int64)
        stored = stored[np.isin(stored, ready)]
    return found.take(np.isin(found.photo, stored) & ~_are_rejected(people, found))


def _known_appearances(people: Sequence[QueryPerson], *, with_groups: bool) -> Appearances:
    """Return what users said of where people are, and the faces in groups of theirs."""
    known = [
        (int(photo), face, number)
        for number, person in enumerate(people)
        for photo, face in (
            *person.confirmed,
            *(person.grouped if with_groups else ()),
            *((photo, -1) for photo in person.tagged),
        )
    ]
    photo, face, who = np.array(known, np.int64).reshape(-1, 3).T
    return Appearances(photo, face, who, np.full(len(known), _KNOWN))


def _are_rejected(people: Sequence[QueryPerson], found: Appearances) -> NDArray[np.bool_]:
    """Return which faces were said not to be the person's."""
    rejected = np.zeros(len(found.photo), bool)
    numbers = found.photo * FACES + found.face
    for number, person in enumerate(people):
        if person.rejected:
            those = [int(photo) * FACES + face for photo, face in person.rejected]
            rejected |= (found.person == number) & np.isin(numbers, those)
    return rejected


def _one_person_per_face(found: Appearances) -> Appearances:
    """Leave each face to the person whom it resembles most."""
    found = found.take(np.lexsort((-found.similarity, found.face, found.photo)))
    is_taken = np.zeros(len(found.photo), bool)
    same = (found.photo[1:] == found.photo[:-1]) & (found.face[1:] == found.face[:-1])
    is_taken[1:] = same & (found.face[1:] >= 0)
    return found.take(~is_taken)


def _patterns(photos: Ints, people: Ints) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield who is together in photos, and in how many just these: far fewer than there are photos."""
    photos, people = np.unique(np.stack([photos, people]), axis=1)
    start = np.flatnonzero(np.concatenate([[True], photos[1:] != photos[:-1]])) if len(photos) else photos
    size = np.diff(np.append(start, len(photos)))
    for n in np.unique(size[size >= 2]).tolist():
        rows = people[start[size == n][:, None] + np.arange(n)]
        members, counts = np.unique(rows, axis=0, return_counts=True)
        yield from zip(map(tuple, members.tolist()), counts.tolist(), strict=True)
