"""Computes what is written next while a file is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Generic, TypeVar

from setnet.system import usable_cores

T = TypeVar("T")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(usable_cores(), thread_name_prefix="setnet-write")


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads stay behind in the parent


class Ahead(Generic[T]):
    """An iterable computed by another thread, one value ahead; the first one from the start.

    >>> list(Ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """

    def __init__(self, values: Iterable[T]) -> None:
        self._values = iter(values)
        self._next = _threads().submit(self._step)

    def _step(self) -> list[T]:
        for value in self._values:
            return [value]
        return []

    def __iter__(self) -> Iterator[T]:
        while found := self._next.result():
            self._next = _threads().submit(self._step)
            yield found[0]
