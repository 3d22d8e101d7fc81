"""Conditions on attributes as SQL: the engine's language, every name and value a parameter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import sql

from setnet.errors import InvalidInputError, one_of
from setnet.index import Condition, Value, conditions_of
from setnet.sources.postgres.connection import Connection
from setnet.sources.postgres.table_names import Tables

Clause = tuple[sql.Composable, list[Any]]


def clause_of(where: Mapping[str, Any] | None) -> Clause:
    """Return what follows WHERE, and its parameters; items without elements never satisfy it.

    >>> clause, values = clause_of({"place": ["Rome", "Oslo"]})
    >>> clause.as_string(), values
    ('set_vector IS NOT NULL AND %s::jsonb @> (attributes -> %s::text)', ['["Rome", "Oslo"]', 'place'])
    """
    if where is not None and not isinstance(where, Mapping):
        raise InvalidInputError(f"where must map attribute names to conditions, not be {where!r:.80}")
    parts: list[Clause] = [(sql.SQL("set_vector IS NOT NULL"), [])]
    parts += [_clause(condition) for condition in conditions_of(where or {})]
    return sql.SQL(" AND ").join([text for text, _ in parts]), [v for _, values in parts for v in values]


def _clause(condition: Condition) -> Clause:
    for text in (condition.attribute, *condition.values):
        if isinstance(text, str) and "\0" in text:
            raise InvalidInputError(f"condition on {condition.attribute!r}: {text!r} holds a NUL character")
    name = condition.attribute
    if condition.operator == "in":
        # containment of scalars in an array: numbers by value, texts by their characters
        return sql.SQL("%s::jsonb @> (attributes -> %s::text)"), [json.dumps(list(condition.values)), name]
    (value,) = condition.values
    if condition.operator == "prefix":
        text = (
            "(starts_with(attributes ->> %s::text, %s) AND jsonb_typeof(attributes -> %s::text) = 'string')"
        )
        return sql.SQL(text), [name, value, name]
    if isinstance(value, str):
        return _compared('(attributes ->> %s::text) COLLATE "C" {} %s', condition, value, "string")
    return _compared("attributes -> %s::text {} %s::jsonb", condition, json.dumps(value), "number")


def _compared(text: str, condition: Condition, value: Value, kind: str) -> Clause:
    """Return a comparison with values of one kind only: jsonb would order any number after any text."""
    whole = f"({text} AND jsonb_typeof(attributes -> %s::text) = {{}})"
    operator = sql.SQL(condition.operator)  # one of a fixed list
    return sql.SQL(whole).format(operator, sql.Literal(kind)), [
        condition.attribute,
        value,
        condition.attribute,
    ]


def refuse_unknown(connection: Connection, tables: Tables, names: Sequence[str]) -> None:
    """Raise when a condition that nothing satisfied is on an attribute that no item has."""
    for name in names:
        has = tables.sql("SELECT EXISTS (SELECT 1 FROM {items} WHERE jsonb_exists(attributes, %s))")
        row = connection.execute(has, [name]).fetchone()
        if row is None or not row[0]:
            every = tables.sql(
                "SELECT DISTINCT name FROM (SELECT attributes FROM {items} LIMIT 10000) AS part, "
                "jsonb_object_keys(attributes) AS name ORDER BY name"
            )
            known = [str(row[0]) for row in connection.execute(every)]
            raise one_of("attribute", name, known or ["(no item has any attribute)"])
