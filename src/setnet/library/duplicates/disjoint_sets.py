"""Union-find: which of some things are linked, directly or through others."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class DisjointSets(Generic[T]):
    """Sets that grow together, link by link.

    Examples
    --------
    >>> sets = DisjointSets[str]()
    >>> sets.link("a", "b"), sets.link("c", "d"), sets.link("b", "d"), sets.link("a", "c")
    (True, True, True, False)
    >>> sets.groups()
    [['a', 'b', 'c', 'd']]
    """

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def link(self, one: T, other: T) -> bool:
        """Unite the sets of two things; return whether they were apart."""
        first, second = self._root(one), self._root(other)
        self._parent[second] = first
        return first != second

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
