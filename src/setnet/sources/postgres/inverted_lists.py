"""Inverted lists in PostgreSQL: elements are divided among centres, an item is in the cell of each element.

A search reads only items with an element in one of the cells nearest to a query element. An item whose cells
are not known yet is in the cell `UNKNOWN`, which every search reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from setnet.errors import InvalidInputError, LockedError
from setnet.index import cells_of, nearest_centres
from setnet.sources.postgres.binary import vectors_of
from setnet.sources.postgres.connection import Connection, Database
from setnet.sources.postgres.table_names import Tables

Floats = NDArray[np.float32]

MOST_CELLS = 4096
UNKNOWN = -1
LEAST_FILLED = 32  # elements per cell, where the number of cells is chosen
SAMPLE = 64  # elements per cell that the centres are made from
BATCH = 2000  # items whose cells are entered in one transaction


@dataclass(frozen=True, eq=False)
class Cells:
    """The centres that elements are divided among; ``made`` counts how often they were made anew."""

    made: int
    centres: Floats

    def of_items(self, elements: Floats, counts: NDArray[np.int64]) -> list[list[int]]:
        """Return the cells of each item's elements."""
        if not len(self.centres):
            return [[UNKNOWN]] * len(counts)
        nearest = nearest_centres(elements, self.centres) if len(elements) else np.empty(0, np.int64)
        return [np.unique(part).tolist() for part in np.split(nearest, np.cumsum(counts))[:-1]]

    def near(self, rows: Floats, probes: int) -> list[int]:
        """Return the cells to read for some vectors: the nearest ``probes`` of each, and `UNKNOWN`."""
        probes = min(probes, len(self.centres))
        if not probes:
            return [UNKNOWN]
        distance = self._squares - 2.0 * rows @ self.centres.T
        return [UNKNOWN, *np.unique(np.argpartition(distance, probes - 1, axis=1)[:, :probes]).tolist()]

    @cached_property
    def _squares(self) -> Floats:
        return np.asarray(np.einsum("cd,cd->c", self.centres, self.centres))


def read_cells(
    connection: Connection, tables: Tables, dim: int, known: Cells | None, lock: str = ""
) -> Cells:
    """Return the cells of the database; those known already unless they were made anew.

    With ``lock`` ("FOR SHARE") nobody makes them anew until the transaction ends.
    """
    row = connection.execute(
        tables.sql("SELECT value::int FROM {meta} WHERE key = 'cells' {lock}", lock=sql.SQL(lock))
    ).fetchone()
    made = int(row[0]) if row else 0
    if known is not None and known.made == made:
        return known
    found = connection.execute(
        tables.sql("SELECT vector_send(centre) FROM {cells} ORDER BY number"), binary=True
    )
    return Cells(made, vectors_of([row[0] for row in found], dim))


def good_number(elements: int) -> int:
    """Return into how many cells so many elements are best divided: a power of two near 8 times their root.

    With more cells, less is read per probe and more centres are compared with the query.

    >>> [good_number(n) for n in (1, 1_000, 56_000, 281_000, 10_000_000)]
    [1, 32, 2048, 4096, 4096]
    """
    wanted = min(8 * math.sqrt(elements), elements / LEAST_FILLED, MOST_CELLS)
    return 1 << max(0, round(math.log2(max(wanted, 1))))


def make_cells(database: Database, tables: Tables, dim: int, count: int | None = None) -> Cells:
    """Divide the elements among new centres and enter the cells of all items, some at a time.

    Searches go on meanwhile, and read what has no cells yet; a run that was interrupted is repeated. Without
    ``count`` it follows from the number of elements.
    """
    if count is not None and not 1 <= count <= MOST_CELLS:
        raise InvalidInputError(f"cells is {count}: valid are 1 to {MOST_CELLS}")
    with database.reading() as connection:
        count = count or good_number(_elements(connection, tables))
        sample = _sample(connection, tables, dim, SAMPLE * count)
    if len(sample) < count:
        raise InvalidInputError(f"{len(sample)} elements cannot fill {count} cells: load more, or make fewer")
    _, centres = cells_of(sample, count)
    with database.writing() as connection:
        cells = _stored(connection, tables, centres)
    last: str | None = ""
    while last is not None:
        last = _entered(database, tables, cells, last)
    return cells


def _elements(connection: Connection, tables: Tables) -> int:
    row = connection.execute(tables.sql("SELECT count(*) FROM {elements}")).fetchone()
    assert row is not None
    return int(row[0])


def _sample(connection: Connection, tables: Tables, dim: int, size: int) -> Floats:
    """Return elements drawn at random, the same for the same data."""
    drawn = tables.sql(
        "SELECT vector_send(vector) FROM {elements} "
        "ORDER BY hashtextextended(item, position), item, position LIMIT %s"
    )
    found = connection.execute(drawn, [size], binary=True)
    return vectors_of([row[0] for row in found], dim)


def _stored(connection: Connection, tables: Tables, centres: Floats) -> Cells:
    """Enter new centres; the cells of all items are unknown from now on, until they are entered."""
    count = tables.sql(
        "UPDATE {meta} SET value = to_jsonb(value::int + 1) WHERE key = 'cells' RETURNING value"
    )
    row = connection.execute(count).fetchone()
    assert row is not None
    connection.execute(tables.sql("DELETE FROM {cells}"))
    with connection.cursor() as cursor:
        add = tables.sql("INSERT INTO {cells} VALUES (%s, %s::real[]::vector)")
        cursor.executemany(add, [(number, centre.tolist()) for number, centre in enumerate(centres)])
    connection.execute(
        tables.sql("UPDATE {items} SET cells = %s::smallint[] WHERE cells <> %s::smallint[]"), [[UNKNOWN]] * 2
    )
    return Cells(int(row[0]), centres)


def _entered(database: Database, tables: Tables, cells: Cells, after: str) -> str | None:
    """Enter the cells of the next items after one; return the last of them, or None at the end."""
    with database.writing() as connection:
        now = read_cells(connection, tables, cells.centres.shape[1], cells, "FOR SHARE")
        if now.made != cells.made:
            raise LockedError("somebody else is making cells of the same items: let that end, then repeat")
        pick = "SELECT id FROM {items} WHERE id > %s AND elements > 0 ORDER BY id LIMIT %s FOR UPDATE"
        ids = [str(row[0]) for row in connection.execute(tables.sql(pick), [after, BATCH])]
        elements, counts = fetched_elements(connection, tables, cells.centres.shape[1], ids)
        with connection.cursor() as cursor:
            enter = tables.sql("UPDATE {items} SET cells = %s::smallint[] WHERE id = %s")
            cursor.executemany(enter, list(zip(cells.of_items(elements, counts), ids, strict=True)))
    return ids[-1] if ids else None


def fetched_elements(
    connection: Connection, tables: Tables, dim: int, ids: Sequence[str]
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the elements of items, one item after another, and how many each has."""
    select = tables.sql(
        "SELECT n::int, vector_send(vector) FROM unnest(%s::text[]) WITH ORDINALITY AS wanted (id, n) "
        "JOIN {elements} ON item = wanted.id ORDER BY n, position"
    )
    rows = connection.execute(select, [list(ids)], binary=True).fetchall()
    counts = np.bincount(np.array([row[0] for row in rows], np.int64), minlength=len(ids) + 1)[1:]
    return vectors_of([row[1] for row in rows], dim), counts.astype(np.int64)
