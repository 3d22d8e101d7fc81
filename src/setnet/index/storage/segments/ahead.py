"""Computes what is written next while a file is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from setnet.index.threads import threads

T = TypeVar("T")


class Ahead(Generic[T]):
    """An iterable computed by another thread, one value ahead; the first one from the start.

    >>> list(Ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """

    def __init__(self, values: Iterable[T]) -> None:
        self._values = iter(values)
        self._next = threads("write").submit(self._step)

    def _step(self) -> list[T]:
        for value in self._values:
            return [value]
        return []

    def __iter__(self) -> Iterator[T]:
        while found := self._next.result():
            self._next = threads("write").submit(self._step)
            yield found[0]
