"""`PostgresSets`: search a table of vectors in a user's own PostgreSQL by sets of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from psycopg.sql import SQL, Composable, Composed, Identifier

from setnet.connect.database import Connection, Database, unit_vectors
from setnet.connect.external import ExternalSets, Floats
from setnet.engine.conditions import Condition
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError, choice_error
from setnet.heads import ELEMENT_LOGISTIC, Logistic

Clause = tuple[Composable, list[Any]]  # what follows WHERE, and its parameters

DISTANCES = {"cosine": SQL("<=>"), "ip": SQL("<#>"), "l2": SQL("<->")}  # pgvector's operators
OLDEST = (0, 8)  # of pgvector: the first that searches an HNSW index on until enough rows satisfy WHERE


class PostgresSets(ExternalSets):
    """A table or view with one row per vector, such as one per face, in a user's PostgreSQL with pgvector.

    The rows with the same value in the column ``item`` are one item, such as a photo. Other columns serve as
    conditions. The database is only read.

    Parameters
    ----------
    uri
        ``postgresql://USER@HOST/DATABASE``, or any connection string of libpq. Messages show it without its
        password.
    table
        ``NAME``, or ``SCHEMA.NAME``; the schema is ``public`` by default.
    item, face, vector
        Columns: which item a row belongs to, what orders the rows of an item, and a vector(n) or halfvec(n).
    distance
        ``"cosine"``, ``"ip"`` or ``"l2"``: what the table's HNSW index, if any, was made for.
    logistic
        A matched pair of similarity s adds ``logistic.probability(s)`` to an item's score.

    Examples
    --------
    >>> sets = PostgresSets("postgresql://me@localhost/photos", item="photo_id")   # doctest: +SKIP
    >>> [hit.id for hit in sets.search(query, k=10, where={"year": 2019})]         # doctest: +SKIP
    ['5f0c77e1']
    """

    def __init__(
        self,
        uri: str,
        table: str = "faces",
        *,
        item: str = "item",
        face: str = "face",
        vector: str = "vector",
        distance: str = "cosine",
        logistic: Logistic = ELEMENT_LOGISTIC,
    ) -> None:
        if distance not in DISTANCES:
            raise choice_error("distance", distance, DISTANCES)
        schema, _, name = table.rpartition(".")
        self._names = {"table": Identifier(schema or "public", name)}
        self._names |= {"item": Identifier(item), "face": Identifier(face), "vector": Identifier(vector)}
        self._distance, self.logistic = DISTANCES[distance], logistic
        self._database = Database(uri, _use_pgvector)
        try:
            with self._database.reading() as connection:
                self.columns = self._read_columns(connection, table)
            for column in (item, face, vector):
                if column not in self.columns:
                    raise choice_error(f"column of {table}", column, self.columns)
            self._item, self._vector = self.columns[item], self.columns[vector]
            kind, _, size = self._vector.rstrip(")").partition("(")
            if kind not in ("vector", "halfvec") or not size:
                raise InvalidInputError(
                    f"column {vector!r} of {table} is {self._vector}: expected vector(n) or halfvec(n)"
                )
        except BaseException:
            self.close()
            raise
        self.dim = int(size)

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._database.close()

    def __enter__(self) -> PostgresSets:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def elements_near(
        self, rows: Floats, count: int, where: Sequence[Condition]
    ) -> tuple[Sequence[str], Floats]:
        """Return all elements of the items that have one of the ``count`` elements nearest to a row."""
        clause = self._clause(where)
        with self._database.reading() as connection:
            return self._fetch(connection, self._nearest(connection, rows, clause, count), clause)

    def _nearest(self, connection: Connection, rows: Floats, clause: Clause, count: int) -> list[str]:
        """Return the items of the rows nearest to each query row."""
        where, values = clause
        # an index looks at so many rows at once, and on until enough of them satisfy the conditions
        for name, value in (("ef_search", min(max(count, 40), 1000)), ("iterative_scan", "strict_order")):
            connection.execute("SELECT set_config(%s, %s, true)", [f"hnsw.{name}", str(value)])
        near = self._sql(
            "(SELECT {item}::text AS item FROM {table} WHERE {where} "
            "ORDER BY {vector} {distance} %s::real[]::{type} LIMIT %s)",
            where=where,
            distance=self._distance,
            type=SQL(self._vector),  # of the database's own spelling
        )
        select = SQL("SELECT DISTINCT item FROM ({}) AS near").format(
            SQL(" UNION ALL ").join([near] * len(rows))
        )
        given = [value for row in rows.tolist() for value in (*values, row, count)]
        return [str(row[0]) for row in connection.execute(select, given)]

    def _fetch(
        self, connection: Connection, items: Sequence[str], clause: Clause
    ) -> tuple[Sequence[str], Floats]:
        where, values = clause
        select = self._sql(
            "SELECT {item}::text, vector_send({vector}::vector) FROM {table} "
            "WHERE {item} = ANY(%s::{type}[]) AND {where} ORDER BY {face}",
            type=SQL(self._item),
            where=where,
        )
        rows = connection.execute(select, [list(items), *values], binary=True).fetchall()
        if not rows:
            return [], np.empty((0, self.dim), np.float32)
        return [str(name) for name, _ in rows], unit_vectors([sent for _, sent in rows], start=4, step=1)

    def _sql(self, statement: str, **parts: Composable) -> Composed:
        """Return a statement in which {table}, {item}, {face} and {vector} stand for the names."""
        return SQL(statement).format(**self._names, **parts)

    def _read_columns(self, connection: Connection, table: str) -> dict[str, str]:
        """Return the types of the table's columns by their names."""
        select = (
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
        found = connection.execute(select, [self._names["table"].as_string(connection)]).fetchall()
        if not found:
            raise NotAnIndexError(
                f"{self._database.name} has no table {table!r}: name one with one row per face"
            )
        return {str(name): str(kind) for name, kind in found}

    def _clause(self, where: Sequence[Condition]) -> Clause:
        """Return conditions on columns as SQL, every value a parameter."""
        parts: list[Composable] = [SQL("true")]
        values: list[Any] = []
        for condition in where:
            if condition.attribute not in self.columns:
                raise choice_error("column", condition.attribute, self.columns)
            column, operator = Identifier(condition.attribute), condition.operator
            if operator == "prefix":
                parts.append(SQL("starts_with({}, %s)").format(column))
            elif operator == "in":
                marks = [SQL("%s")] * len(condition.values) or [SQL("NULL")]
                parts.append(SQL("{} IN ({})").format(column, SQL(", ").join(marks)))
            else:
                parts.append(SQL("{} {} %s").format(column, SQL(operator)))  # one of a fixed list
            values += condition.values
        return SQL(" AND ").join(parts), values


def _use_pgvector(connection: Connection) -> None:
    """Make the types and operators of pgvector visible on a connection, and nothing else but the system's.

    A function that somebody left in another schema is never called in place of a system's one.
    """
    found = connection.execute(
        "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    ).fetchone()
    if found is None:
        raise NotAnIndexError(
            "this database has no extension pgvector: install its package on the server, then `CREATE "
            "EXTENSION vector`"
        )
    schema, version = found
    if tuple(int(n) for n in str(version).split(".")[:2]) < OLDEST:
        raise StorageError(
            f"pgvector {version} is too old: 0.8 or newer is needed; update its package on the server, then "
            "`ALTER EXTENSION vector UPDATE`"
        )
    connection.execute(SQL("SET search_path = pg_catalog, {}").format(Identifier(schema)))
