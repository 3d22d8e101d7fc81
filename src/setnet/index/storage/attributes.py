"""Conditions on attributes, answered by SQLite as a set of items.

A condition is a mapping from attribute names to what their value must be: a value (equality), a list of
values (any of them), or a mapping of operators: ``{">=": 2019, "<": 2021}``, ``{"prefix": "/photos/"}``,
``{"in": ["a", "b"]}``, ``{"!=": "x"}``. All conditions must hold; an item without the attribute does not
satisfy a condition on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, StorageError, one_of
from setnet.index.arguments import is_unicode
from setnet.index.storage.catalog import Catalog

Value = str | int | float
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
OPERATORS = (*COMPARISONS, "in", "prefix")
LAST = chr(0x10FFFF)
IN = "value IN"
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
            clean[name] = _value(value, f"item {item!r}, attribute {name!r}")
    return clean


def _value(value: Any, where: str) -> Value:
    if isinstance(value, (bool, np.bool_, np.integer)):
        value = int(value)
    elif isinstance(value, np.floating):
        value = float(value)
    if not isinstance(value, (str, int, float)):
        raise InvalidInputError(f"{where}: {value!r} must be a string, a number or None")
    if isinstance(value, str) and not is_unicode(value):
        raise InvalidInputError(f"{where}: {value!r} is not valid Unicode text")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{where}: {value!r} is not a finite number")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidInputError(f"{where}: {value!r} does not fit into 64 bits")
    return value


def items_where(catalog: Catalog, where: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the sequence numbers of the items that satisfy all conditions, in ascending order."""
    numbers = catalog.attribute_numbers()
    found: NDArray[np.int64] | None = None
    for name, condition in where.items():
        if name not in numbers:
            raise one_of("attribute", name, sorted(numbers) or ["(no item has any attribute)"])
        for sql, values in _clauses(name, condition):
            seqs = _seqs(catalog, numbers[name], sql, values)
            found = seqs if found is None else np.intersect1d(found, seqs, assume_unique=True)
    return np.empty(0, np.int64) if found is None else found


def _seqs(catalog: Catalog, name: int, sql: str, values: list[Value]) -> NDArray[np.int64]:
    """Return the items that satisfy one clause; a long list is cut, as a statement takes so many values."""
    statements = [(sql, values)]
    if sql == IN:
        parts = [values[at : at + MOST_VALUES] for at in range(0, len(values), MOST_VALUES)]
        statements = [(f"value IN ({','.join('?' * len(part))})", part) for part in parts]
    select = "SELECT seq FROM attributes WHERE name = ? AND "
    rows = [row for sql, part in statements for row in catalog.db.execute(select + sql, [name, *part])]
    try:
        return np.unique(np.fromiter((row[0] for row in rows), np.int64, len(rows)))
    except (TypeError, ValueError) as error:
        raise StorageError(f"{catalog.path} is damaged: an attribute of no item ({error})") from None


def _clauses(name: str, condition: Any) -> list[tuple[str, list[Value]]]:
    """Return what must hold of one attribute, ranges in one clause."""
    where = f"condition on {name!r}"
    if isinstance(condition, (list, tuple, set, frozenset)):
        condition = {"in": condition}
    elif not isinstance(condition, Mapping):
        condition = {"=": condition}
    if not condition:
        raise InvalidInputError(f"{where} is empty: give at least one of {', '.join(OPERATORS)}")
    parts = [_operator(operator, operand, where) for operator, operand in condition.items()]
    ranges = [part for part in parts if part[0] != IN]
    together = (" AND ".join(sql for sql, _ in ranges), [v for _, values in ranges for v in values])
    return [part for part in parts if part[0] == IN] + ([together] if ranges else [])


def _operator(operator: str, operand: Any, where: str) -> tuple[str, list[Value]]:
    if operator in COMPARISONS:
        value = _value(operand, where)
        # SQLite would order any text after any number; a comparison means values of its own kind
        kind = "typeof(value) = 'text'" if isinstance(value, str) else "typeof(value) != 'text'"
        return f"value {operator} ? AND {kind}", [value]
    if operator == "in":
        if isinstance(operand, (str, bytes)) or not hasattr(operand, "__iter__"):
            raise InvalidInputError(f"{where}: 'in' takes a list of values, not {operand!r}")
        return IN, [_value(v, where) for v in operand]
    if operator == "prefix":
        if not isinstance(operand, str):
            raise InvalidInputError(f"{where}: 'prefix' takes a string, not {operand!r}")
        operand = _value(operand, where)
        return "value >= ? AND value <= ?", [operand, operand + LAST]
    raise one_of(f"operator in {where}:", operator, OPERATORS)
