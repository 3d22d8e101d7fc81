"""Attributes of items as columns of a segment: the values that occur, in order, and the number of each row's.

Values stand in their order, numbers before texts, as JSON. So a comparison is a range of numbers, found by
looking at a few values, and a condition on all rows is one look-up per row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.conditions import Condition, Value, checked_value
from setnet.engine.kernels import backend
from setnet.engine.settings import is_unicode
from setnet.errors import InvalidInputError

Order = tuple[bool, Value]  # numbers before texts


@dataclass(frozen=True, eq=False)
class Column:
    """One attribute of the rows of a segment or of a batch.

    Attributes
    ----------
    numbers
        Of each row's value; -1 where the row has none.
    offsets, texts
        Where each value begins, and all of them one after another in UTF-8.
    """

    numbers: NDArray[np.int32]
    offsets: NDArray[np.int64]
    texts: NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Sequence[bytes], numbers: NDArray[np.int32]) -> Column:
        """Return a column of values that are in order."""
        offsets = np.fromiter(accumulate(map(len, texts), initial=0), np.int64, len(texts) + 1)
        return cls(numbers, offsets, np.frombuffer(b"".join(texts), np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def text(self, number: int) -> bytes:
        """Return a value as JSON."""
        return self.texts[self.offsets[number] : self.offsets[number + 1]].tobytes()

    def value(self, number: int) -> Value:
        """Return a value; what is none is a `ValueError`."""
        try:
            return checked_value(json.loads(self.text(number)), "a stored attribute")
        except (InvalidInputError, RecursionError) as error:
            raise ValueError(str(error)) from None

    def values_where(self, conditions: Iterable[Condition]) -> NDArray[np.bool_]:
        """Return which values satisfy all conditions."""
        is_met = np.ones(len(self), bool)
        for condition in conditions:
            meets = np.zeros(len(self), bool)
            for value in condition.values:
                for part in self._ranges(condition.operator, value):
                    meets[part] = True
            is_met &= meets
        return is_met

    def _ranges(self, operator: str, value: Value) -> list[slice]:
        """Return the numbers of the values that a comparison with one value allows, of that value's kind."""
        kind = isinstance(value, str)
        texts = self._first(lambda order: order[0])
        first, end = (texts, len(self)) if kind else (0, texts)
        low = self._first(lambda order: order >= (kind, value))
        if operator == "prefix":
            high = self._first(lambda order: order[0] and str(order[1])[: len(str(value))] > str(value))
            return [slice(low, high)]
        high = self._first(lambda order: order > (kind, value))
        return {
            "=": [slice(low, high)],
            "in": [slice(low, high)],
            "!=": [slice(first, low), slice(high, end)],
            "<": [slice(first, low)],
            "<=": [slice(first, high)],
            ">": [slice(high, end)],
            ">=": [slice(low, end)],
        }[operator]

    def _first(self, is_reached: Callable[[Order], bool]) -> int:
        """Return the first number from which on all values satisfy a test; their count when none does."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if is_reached(_order(self.value(middle))):
                high = middle
            else:
                low = middle + 1
        return low


SAMPLED = 512  # rows of a segment that tell how many satisfy conditions


class RowFilter:
    """Which rows of segments satisfy conditions on attributes: looked up for some rows, or once for all.

    A segment is the number of its rows and, for each attribute that has conditions, which of its values
    satisfy them and the number of each row's.
    """

    def __init__(
        self, segments: Sequence[tuple[int, list[tuple[NDArray[np.bool_], NDArray[np.int32]]]]]
    ) -> None:
        self._segments = segments
        self._masks: dict[int, NDArray[np.bool_]] = {}

    def __getitem__(self, s: int) -> NDArray[np.bool_]:
        """Return which rows of a segment satisfy the conditions."""
        if (mask := self._masks.get(s)) is None:
            rows, tables = self._segments[s]
            mask, meets = np.ones(rows, bool), np.empty(rows, bool)
            for is_met, numbers in tables:
                backend.kernels.take_mask(is_met, numbers, meets)
                mask &= meets
            self._masks[s] = mask
        return mask

    def of_rows(self, s: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some rows of a segment satisfy the conditions."""
        mask = np.ones(len(rows), bool)
        for is_met, numbers in self._segments[s][1]:
            mask &= np.append(is_met, False)[numbers[rows]]  # rows without a value have -1
        return mask

    @cached_property
    def share(self) -> float:
        """About how large a share of the rows satisfies the conditions."""
        total = sum(rows for rows, _ in self._segments)
        met = 0.0
        for s, (rows, _) in enumerate(self._segments):
            sample = np.arange(0, rows, rows // SAMPLED + 1)
            met += rows * float(self.of_rows(s, sample).mean()) if rows else 0.0
        return met / max(1, total)

    def part(self, numbers: Sequence[int]) -> RowFilter:
        """Return the filter of some of the segments."""
        return RowFilter([self._segments[s] for s in numbers])


def _order(value: Value) -> Order:
    return isinstance(value, str), value


def _in_order(texts: Iterable[bytes]) -> list[bytes]:
    """Return values given as JSON in their order."""
    return sorted(texts, key=lambda text: (*_order(json.loads(text)), text))


def columns_of(items: Sequence[Mapping[str, Any] | None], ids: Sequence[str]) -> dict[str, Column]:
    """Return the attributes of items by name, without those that are None; a bad one is an error.

    >>> columns_of([{"year": 2019}, None, {"year": 2018}], ["a", "b", "c"])["year"].numbers.tolist()
    [1, -1, 0]
    """
    found: dict[str, Column] = {}
    # each different value is looked at once: most attributes have few
    for name in dict.fromkeys(name for item in items if item for name in item):
        values = [item.get(name) if item else None for item in items]
        if not isinstance(name, str) or not name or len(name) > 128 or not is_unicode(name):
            item = next(i for i, given in zip(ids, items, strict=True) if given and name in given)
            raise InvalidInputError(
                f"item {item!r}: attribute name {name!r} must be a string of 1 to 128 characters"
            )
        # numbers of other kinds may be equal; what cannot be hashed is no value
        keys = [(value.__class__, value if value.__hash__ else repr(value)) for value in values]
        text_of: dict[tuple[type, Any], bytes | None] = {}
        for key in dict.fromkeys(keys):
            at = keys.index(key)
            value = values[at]
            where = f"item {ids[at]!r}, attribute {name!r}"
            text_of[key] = None if value is None else json.dumps(checked_value(value, where)).encode()
        texts = _in_order({text for text in text_of.values() if text is not None})
        number: dict[bytes | None, int] = {None: -1} | {text: i for i, text in enumerate(texts)}
        numbers = {key: number[text] for key, text in text_of.items()}
        if texts:
            found[name] = Column.of(texts, np.fromiter(map(numbers.__getitem__, keys), np.int32, len(keys)))
    return dict(sorted(found.items()))


def merged_column(
    parts: Sequence[tuple[Column | None, NDArray[np.int64], NDArray[np.int64]]], rows: int
) -> Column:
    """Return a column of chosen rows of several, without the values that none of these rows has.

    ``parts`` have a column (or None), the chosen rows of it, and the places of these in the new one.
    """
    used = []
    for column, chosen, _ in parts:
        numbers = np.empty(0, np.int32) if column is None else np.unique(column.numbers[chosen])
        used.append(numbers[numbers >= 0])
    texts = [
        [column.text(i) for i in numbers.tolist()] if column else []
        for (column, _, _), numbers in zip(parts, used, strict=True)
    ]
    values = texts[0] if len(texts) == 1 else _in_order(set().union(*texts))
    place = {text: i for i, text in enumerate(values)}
    found = np.full(rows, -1, np.int32)
    for (column, chosen, places), numbers, of_part in zip(parts, used, texts, strict=True):
        if column is not None:
            table = np.full(len(column) + 1, -1, np.int32)  # the last is that of rows without a value
            table[numbers] = [place[text] for text in of_part]
            found[places] = table[column.numbers[chosen]]
    return Column.of(values, found)
