"""The names of the tables in the database, quoted wherever they stand in a statement."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg.sql import SQL, Composable, Composed, Identifier

from setnet.errors import InvalidInputError

NAME_LIMIT = 63  # bytes; PostgreSQL cuts longer names without a word


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one schema, whose name is the user's and never becomes part of a statement's text."""

    schema: str = "setnet"

    def __post_init__(self) -> None:
        size = len(self.schema.encode("utf-8", "replace"))
        odd = "\0" in self.schema or "%" in self.schema or self.schema.startswith("pg_")
        if odd or not 1 <= size <= NAME_LIMIT:
            raise InvalidInputError(
                f"schema {self.schema[:80]!r}: a name of 1 to {NAME_LIMIT} bytes is expected, without % and "
                "not beginning with pg_"
            )

    def sql(self, statement: str, **parts: Composable) -> Composed:
        """Return a statement in which {items}, {elements}, {cells} and {meta} stand for the tables."""
        names = ("items", "elements", "cells", "meta")
        tables = {name: Identifier(self.schema, name) for name in names}
        return SQL(statement).format(**tables, schema=Identifier(self.schema), **parts)

    def part(self, table: str, number: int) -> Identifier:
        """Return the name of a partition."""
        return Identifier(self.schema, f"{table}_{number}")
