"""Copies and bursts: which photos of a list show the same moment."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from setnet.library.photos import LibraryPhoto, taken_number

T = TypeVar("T", bound=Hashable)
_BURST = 2.0  # seconds between two photos of a burst; most cameras write whole seconds


class DisjointSets(Generic[T]):
    """Sets that grow together, link by link.

    Examples
    --------
    >>> sets = DisjointSets()
    >>> for pair in ("ab", "cd", "bd"):
    ...     sets.link(*pair)
    >>> sets.groups()
    [['a', 'b', 'c', 'd']]
    """

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def link(self, one: T, other: T) -> None:
        """Unite the sets of two things."""
        first = self._root(one)
        self._parent[self._root(other)] = first

    def linked(self, one: T, other: T) -> bool:
        """Tell whether two things are in one set."""
        return self._root(one) == self._root(other)

    def groups(self) -> list[list[T]]:
        """Return the sets, and the things in each, in the order in which they were first named."""
        found: dict[T, list[T]] = {}
        for thing in list(self._parent):
            found.setdefault(self._root(thing), []).append(thing)
        return list(found.values())

    def _root(self, thing: T) -> T:
        parent = self._parent.setdefault(thing, thing)
        while parent != thing:
            self._parent[thing] = self._parent[parent]  # halves the way for the next search
            thing, parent = parent, self._parent[parent]
        return thing


class Moment(NamedTuple):
    """What tells photos of one moment.

    Photos with the same `content` are copies. Photos of the same `scene`, taken within seconds of each other,
    are a burst; `taken` is None where the time is not known to the second.
    """

    content: Hashable
    scene: Hashable
    taken: float | None

    @classmethod
    def of(cls, photo: LibraryPhoto, people: Hashable) -> Moment:
        """Return that of a photo; a scene has one folder and the same `people`, whoever or how many."""
        return cls.of_row(
            photo.id,
            photo.stored_hash,
            photo.stored_path,
            taken_number(photo.taken),
            photo.taken_from,
            photo.start,
            people,
        )

    @classmethod
    def of_row(
        cls,
        photo: Hashable,
        content: bytes,
        path: bytes,
        taken: float | None,
        taken_from: str | None,
        start: float | None,
        people: Hashable,
    ) -> Moment:
        """Return that of a row of the database; shots of videos have neither copies nor bursts."""
        if start is not None:
            return cls(photo, photo, None)
        # Files copied together have one time, and a name may have a day only.
        is_day = taken_from == "name" and taken is not None and taken % 86_400 == 0
        time = None if taken_from == "file" or is_day else taken
        return cls(content, (path.rpartition(b"/")[0], people), time)


def find_stacks(moments: Sequence[Moment]) -> list[list[int]]:
    """Return the stacks of photos, by number and in the order of their first ones; most have one photo.

    >>> at_the_lake = [Moment(content, "lake", taken) for content, taken in (("a", 5), ("b", 90), ("c", 6))]
    >>> find_stacks([*at_the_lake, Moment("b", "elsewhere", None)])
    [[0, 2], [1, 3]]
    """
    sets, contents, dated = DisjointSets[int](), dict[Hashable, int](), list[tuple[float, int]]()
    for number, (content, _, taken) in enumerate(moments):
        sets.link(number, number)
        sets.link(contents.setdefault(content, number), number)
        if taken is not None:
            dated.append((taken, number))
    latest: dict[Hashable, tuple[float, int]] = {}
    for taken, number in sorted(dated):
        scene = moments[number].scene
        if scene in latest and taken - latest[scene][0] <= _BURST:
            sets.link(latest[scene][1], number)
        latest[scene] = taken, number
    return sets.groups()


def split_stack(photos: Sequence[LibraryPhoto]) -> tuple[tuple[LibraryPhoto, ...], tuple[LibraryPhoto, ...]]:
    """Return the copies and the others that the first photo of a stack stands for."""
    copies, others = list[LibraryPhoto](), list[LibraryPhoto]()
    seen = {photos[0].stored_hash}
    for photo in photos[1:]:
        (copies if photo.stored_hash in seen else others).append(photo)
        seen.add(photo.stored_hash)
    return tuple(copies), tuple(others)
