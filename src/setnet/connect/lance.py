"""`LanceSets`: search a table of LanceDB by sets of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setnet.connect.external import ExternalSets, Floats
from setnet.engine.conditions import Condition, Value
from setnet.errors import InvalidInputError, choice_error
from setnet.heads import ELEMENT_LOGISTIC, Logistic


class LanceSets(ExternalSets):
    """A table of LanceDB with one row per vector, such as one per face.

    Rows with the same value in the column ``item`` are one item, such as a photo. The table is only read. A
    scalar index on ``item`` makes a search faster.

    Parameters
    ----------
    table
        An open table of `lancedb`.
    item, vector
        Columns: which item a row belongs to, and its vector, a list of fixed size.
    distance
        ``"cosine"``, ``"dot"`` or ``"l2"``: what the table's vector index, if any, was made for.
    logistic
        A matched pair of similarity s adds ``logistic.probability(s)`` to an item's score.

    Examples
    --------
    >>> sets = LanceSets(lancedb.connect("data").open_table("faces"))            # doctest: +SKIP
    >>> [hit.id for hit in sets.search(query, k=10, where={"year": 2019})]       # doctest: +SKIP
    ['5f0c77e1']
    """

    def __init__(
        self,
        table: Any,
        *,
        item: str = "item",
        vector: str = "vector",
        distance: str = "cosine",
        logistic: Logistic = ELEMENT_LOGISTIC,
    ) -> None:
        self._table, self._item, self._vector = table, item, vector
        self._distance, self.logistic = distance, logistic
        for column in (item, vector):
            self._column(column)
        kind = table.schema.field(vector).type
        self.dim = getattr(kind, "list_size", 0)
        if not self.dim:
            raise InvalidInputError(f"column {vector!r} is {kind}: expected a list of floats of fixed size")

    def elements_near(
        self, rows: Floats, count: int, where: Sequence[Condition]
    ) -> tuple[Sequence[str], Floats]:
        """Return all elements of the items that have one of the ``count`` elements nearest to a row."""
        conditions = [self._sql(condition) for condition in where]
        near = self._table.search(rows, vector_column_name=self._vector).distance_type(self._distance)
        if conditions:
            near = near.where(" AND ".join(conditions), prefilter=True)
        found = _read(near.select([self._item, "_distance"]).limit(count))
        items = found.column(self._item).unique().drop_null().to_pylist()
        if not items:
            return [], np.empty((0, self.dim), np.float32)
        conditions.append(self._sql(Condition(self._item, "in", tuple(items))))
        query = self._table.search().where(" AND ".join(conditions)).with_row_id(True)
        held = _read(query.select([self._item, self._vector]).limit(self._table.count_rows()))
        held = held.sort_by("_rowid")
        elements = held.column(self._vector).combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return [str(owner) for owner in held.column(self._item).to_pylist()], elements

    def _column(self, name: str) -> str:
        """Return a column's name as SQL, or raise an error that lists the columns."""
        if name not in self._table.schema.names:
            raise choice_error("column", name, self._table.schema.names)
        return f"`{name}`"

    def _sql(self, condition: Condition) -> str:
        """Return a condition on a column in LanceDB's SQL."""
        column = self._column(condition.attribute)
        values = [_literal(value) for value in condition.values]
        if condition.operator == "prefix":
            return f"starts_with({column}, {values[0]})"
        if condition.operator == "in":
            return f"{column} IN ({', '.join(values) or 'NULL'})"
        return f"{column} {condition.operator} {values[0]}"  # one of a fixed list


def _read(query: Any) -> Any:
    """Return what a query finds as a table of Arrow."""
    try:
        return query.to_arrow()
    except ValueError as error:  # a condition whose value is not of the column's type
        raise InvalidInputError(f"LanceDB: {str(error).partition(', /')[0]}") from error


def _literal(value: Value) -> str:
    """Return a value as it stands in SQL; a whole number fits columns of all numbers.

    >>> _literal("Ann's"), _literal(2019.0)
    ("'Ann''s'", '2019')
    """
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(int(value) if value == int(value) and abs(value) < 2**53 else value)
