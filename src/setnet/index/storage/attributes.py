"""Attributes of items, and the items that satisfy conditions on them, by SQLite.

`setnet.index.conditions` says what a condition is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, StorageError, UnknownAttributeError, one_of
from setnet.index.arguments import is_unicode
from setnet.index.conditions import Condition, Value, checked_value, conditions_of
from setnet.index.storage.catalog import Catalog

LAST = chr(0x10FFFF)
MOST_VALUES = 20_000  # of one statement: below every build's limit


def valid_attributes(attributes: Mapping[str, Any], item: str) -> dict[str, Value]:
    """Return an item's attributes with None left out, or raise naming the bad one."""
    clean: dict[str, Value] = {}
    for name, value in attributes.items():
        if not isinstance(name, str) or not name or len(name) > 128 or not is_unicode(name):
            raise InvalidInputError(
                f"item {item!r}: attribute name {name!r} must be a string of 1 to 128 characters"
            )
        if value is not None:
            clean[name] = checked_value(value, f"item {item!r}, attribute {name!r}")
    return clean


def items_where(catalog: Catalog, where: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the sequence numbers of the items that satisfy all conditions, in ascending order."""
    numbers = catalog.attribute_numbers()
    found: NDArray[np.int64] | None = None
    for name, given in where.items():
        if name not in numbers:
            known = sorted(numbers) or ["(no item has any attribute)"]
            raise UnknownAttributeError(str(one_of("attribute", name, known)))
        for statements in _clauses(conditions_of({name: given})):
            seqs = _seqs(catalog, numbers[name], statements)
            found = seqs if found is None else np.intersect1d(found, seqs, assume_unique=True)
    return np.empty(0, np.int64) if found is None else found


Statements = list[tuple[str, list[Value]]]


def _seqs(catalog: Catalog, name: int, statements: Statements) -> NDArray[np.int64]:
    """Return the items that satisfy any of some clauses."""
    select = "SELECT seq FROM attributes WHERE name = ? AND "
    rows = [row for sql, values in statements for row in catalog.db.execute(select + sql, [name, *values])]
    try:
        return np.unique(np.fromiter((row[0] for row in rows), np.int64, len(rows)))
    except (TypeError, ValueError) as error:
        raise StorageError(f"{catalog.path} is damaged: an attribute of no item ({error})") from None


def _clauses(conditions: list[Condition]) -> list[Statements]:
    """Return what must hold of one attribute, ranges in one clause; a long list is cut into several."""
    lists = [_any_of(c.values) for c in conditions if c.operator == "in"]
    ranges = [_range(c) for c in conditions if c.operator != "in"]
    together = (" AND ".join(sql for sql, _ in ranges), [v for _, values in ranges for v in values])
    return [*lists, [together]] if ranges else lists


def _any_of(values: tuple[Value, ...]) -> Statements:
    parts = [list(values[at : at + MOST_VALUES]) for at in range(0, len(values), MOST_VALUES)]
    return [(f"value IN ({','.join('?' * len(part))})", part) for part in parts]


def _range(condition: Condition) -> tuple[str, list[Value]]:
    (value,) = condition.values
    if condition.operator == "prefix":
        assert isinstance(value, str)
        return "value >= ? AND value <= ?", [value, value + LAST]
    # SQLite would order any text after any number; a comparison means values of its own kind
    kind = "typeof(value) = 'text'" if isinstance(value, str) else "typeof(value) != 'text'"
    return f"value {condition.operator} ? AND {kind}", [value]
