"""Decisions read from bytes, so that any input of a fuzzer is a valid sequence of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["Choices"]

T = TypeVar("T")


class Choices:
    """Reads decisions from bytes; where these end, every decision is the first one.

    The same bytes always decide the same, and a small change of them is a small change of the decisions:
    what a coverage-guided fuzzer needs to learn from its inputs.

    >>> choices = Choices(b"\\x05\\x01")
    >>> choices.below(4), choices.pick("ab"), choices.below(1000)
    (1, 'b', 0)
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, end: int) -> int:
        """Return a whole number from 0 to ``end - 1``."""
        size = max(1, ((end - 1).bit_length() + 7) // 8)
        return int.from_bytes(self.take(size), "little") % end

    def take(self, size: int) -> bytes:
        """Return the next bytes as they are; fewer where they end."""
        part = self._data[self._at : self._at + size]
        self._at += size
        return part

    def rest(self) -> bytes:
        """Return all bytes that were not read."""
        return self.take(len(self._data))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.below(len(options))]

    def once_in(self, number: int) -> bool:
        """Return True about once in ``number`` times; at the end of the bytes, False."""
        return self.below(number) == number - 1

    def several(self, most: int = 20) -> int:
        """Return a number of repetitions from 1 to ``most``, mostly 1."""
        return self.pick((1, 1, 1, 1, 2, 3, most))
