"""`PostgresSets`: search a table of vectors in a user's own PostgreSQL by sets of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Composable, Composed, Identifier

from setnet.connect.database import Connection, Database, unit_vectors
from setnet.engine import Hit, QueryLike, VectorsLike
from setnet.engine.conditions import conditions_of
from setnet.engine.query import Examples, Query
from setnet.engine.rank import rank_given
from setnet.engine.results import RankedItems
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError, choice_error
from setnet.heads import ELEMENT_LOGISTIC, Logistic

Floats = NDArray[np.float32]
Clause = tuple[Composable, list[Any]]  # what follows WHERE, and its parameters

DISTANCES = {"cosine": SQL("<=>"), "ip": SQL("<#>"), "l2": SQL("<->")}  # pgvector's operators
OLDEST = (0, 8)  # of pgvector: the first that searches an HNSW index on until enough rows satisfy WHERE


class ElementOptions(TypedDict, total=False):
    """The keywords of `PostgresSets.search` that `setnet.engine.SearchOptions` explains."""

    at_least: int
    only: bool
    without: VectorsLike | None
    examples: Examples


class PostgresSets:
    """A table or view with one row per vector, such as one per face, in a user's PostgreSQL with pgvector.

    The rows with the same value in the column ``item`` are one item, such as a photo. A search takes
    candidates in SQL, fetches their vectors at unit length and ranks them as `SetIndex` does. Other columns
    serve as conditions. The database is only read.

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

    def search(
        self,
        query: QueryLike,
        k: int = 100,
        *,
        candidates: int = 200,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[ElementOptions],
    ) -> list[Hit]:
        """Return the items that hold most of the query's elements, best first.

        Parameters
        ----------
        query
            (Q, dim) array, or a list with one (n, dim) array of examples per query element.
        k
            How many hits at most.
        candidates
            Items are ranked that have one of so many rows nearest to each query element. An HNSW index finds
            these rows if there is one; else PostgreSQL compares all. Conditions on elements hold among the
            items, so that with strict ones fewer than k may be found though there are more.
        where
            Conditions on columns, as on attributes in `SetIndex.search`. Rows that do not satisfy them count
            as not there.
        **options
            ``at_least``, ``only``, ``without`` and ``examples``, as in `setnet.engine.SearchOptions`.
        """
        asked = Query.of(query, self.dim, self.logistic, k, candidates=candidates, **options)
        clause = self._clause(where)
        one_each: Examples = "max" if options.get("examples") == "max" else "aggregate"
        rows = Query.of(query, self.dim, self.logistic, examples=one_each).wanted.astype(np.float32)
        with self._database.reading() as connection:
            near = self._nearest(connection, rows, clause, candidates)
            return self._rank(connection, near, asked, clause).hits()

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

    def _rank(
        self, connection: Connection, items: Sequence[str], query: Query, clause: Clause
    ) -> RankedItems:
        """Return items ranked by the matching of their vectors; of equal ones the lower id comes first."""
        where, values = clause
        select = self._sql(
            "SELECT {item}::text, vector_send({vector}::vector) FROM {table} "
            'WHERE {item} = ANY(%s::{type}[]) AND {where} ORDER BY {item}::text COLLATE "C", {face}',
            type=SQL(self._item),
            where=where,
        )
        rows = connection.execute(select, [list(items), *values], binary=True).fetchall()
        if not rows:
            return RankedItems.none(query.size)
        ids = list(dict.fromkeys(str(name) for name, _ in rows))
        number = {name: i for i, name in enumerate(ids)}
        counts = np.bincount([number[str(name)] for name, _ in rows]).astype(np.int64)
        elements = unit_vectors([sent for _, sent in rows], start=4, step=1)
        return rank_given(ids, elements, counts, query)

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

    def _clause(self, where: Mapping[str, Any] | None) -> Clause:
        """Return conditions on columns as SQL, every value a parameter."""
        if where is not None and not isinstance(where, Mapping):
            raise InvalidInputError(f"where must map columns to conditions, not be {where!r:.80}")
        parts: list[Composable] = [SQL("true")]
        values: list[Any] = []
        for condition in conditions_of(where or {}):
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
