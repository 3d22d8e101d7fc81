"""The language of conditions on attributes: what `where` of a search means, whoever answers it.

A condition is a mapping from attribute names to what their value must be: a value (equality), a list of
values (any of them), or a mapping of operators: ``{">=": 2019, "<": 2021}``, ``{"prefix": "/photos/"}``,
``{"in": ["a", "b"]}``, ``{"!=": "x"}``. All conditions must hold; an item without the attribute does not
satisfy a condition on it. Texts are ordered by their characters' numbers, and never compared with numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setnet.engine.settings import is_unicode
from setnet.errors import InvalidInputError, choice_error

Value = str | int | float
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
OPERATORS = (*COMPARISONS, "in", "prefix")


@dataclass(frozen=True, slots=True)
class Condition:
    """What one attribute must be: an operator of `OPERATORS` and its values, one unless it is ``in``."""

    attribute: str
    operator: str
    values: tuple[Value, ...]


def conditions_of(where: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions that a mapping stands for, or raise an error naming the bad one.

    >>> conditions_of({"year": {">=": 2019}, "place": ["Rome", "Oslo"]})
    [Condition(attribute='year', operator='>=', values=(2019,)),
     Condition(attribute='place', operator='in', values=('Rome', 'Oslo'))]
    """
    return [condition for name, given in where.items() for condition in _of_one(name, given)]


def _of_one(name: str, given: Any) -> list[Condition]:
    where = f"condition on {name!r}"
    if isinstance(given, (list, tuple, set, frozenset)):
        given = {"in": given}
    elif not isinstance(given, Mapping):
        given = {"=": given}
    if not given:
        raise InvalidInputError(f"{where} is empty: give at least one of {', '.join(OPERATORS)}")
    return [Condition(name, operator, _values(operator, v, where)) for operator, v in given.items()]


def _values(operator: str, operand: Any, where: str) -> tuple[Value, ...]:
    if operator in COMPARISONS:
        return (checked_value(operand, where),)
    if operator == "in":
        if isinstance(operand, (str, bytes)) or not hasattr(operand, "__iter__"):
            raise InvalidInputError(f"{where}: 'in' takes a list of values, not {operand!r}")
        return tuple(checked_value(v, where) for v in operand)
    if operator == "prefix":
        if not isinstance(operand, str):
            raise InvalidInputError(f"{where}: 'prefix' takes a string, not {operand!r}")
        return (checked_value(operand, where),)
    raise choice_error(f"operator in {where}:", operator, OPERATORS)


def checked_value(value: Any, where: str) -> Value:
    """Return a value of an attribute, or raise an error that says where it stands."""
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
