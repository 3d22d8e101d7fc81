"""`PostgresSets`: items that are sets of vectors, in a user's own PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack

from numpy.typing import ArrayLike

from setnet.errors import InvalidInputError, one_of
from setnet.index import (
    Hit,
    QueryLike,
    SearchOptions,
    VectorsLike,
    check_ids,
    checked_batch,
    query_elements,
)
from setnet.sets import ELEMENT_LOGISTIC, Aggregator, Logistic
from setnet.sources.postgres.binary import Bits, BitsDumper
from setnet.sources.postgres.connection import Connection, Database
from setnet.sources.postgres.extension import use_vectors
from setnet.sources.postgres.inverted_lists import Cells, make_cells, read_cells
from setnet.sources.postgres.layout import Layout, head_of, make_layout, one_bit_head, read_layout
from setnet.sources.postgres.searching import SEARCH_MODES, PostgresSearch
from setnet.sources.postgres.table_names import Tables
from setnet.sources.postgres.where import clause_of, refuse_unknown
from setnet.sources.postgres.writing import delete_items, refuse_nul, write_batch

CANDIDATES = 500
PROBES = 8


class ElementOptions(TypedDict, total=False):
    """The keywords of `PostgresSets.search` that `setnet.index.SearchOptions` explains."""

    at_least: int
    only: bool
    without: VectorsLike | None
    examples: str


class PostgresSets:
    """Items, each a set of vectors ("elements"), in the tables of one schema of a PostgreSQL database.

    An item has one set vector, a string of bits. A search orders items by their set vectors in SQL, fetches
    the elements of the best and ranks these as `SetIndex` does. Any number of processes may search, add and
    delete at once; what a call has returned from is on the server's disk.

    Parameters
    ----------
    uri
        ``postgresql://USER@HOST/DATABASE``, or any connection string of libpq. Messages show it without its
        password.
    schema
        Where the tables are; `create` makes them.
    head
        The head that made the set vectors, where it is not one that comes with setnet.

    Examples
    --------
    >>> sets = PostgresSets.create("postgresql://me@localhost/photos")       # doctest: +SKIP
    >>> sets.add(["a.jpg"], descriptors, counts=[2], attributes=[{"year": 2019}])  # doctest: +SKIP
    >>> [hit.id for hit in sets.search(query, k=10, where={"year": 2019})]   # doctest: +SKIP
    ['a.jpg']
    """

    def __init__(self, uri: str, schema: str = "setnet", *, head: Aggregator | str | None = None) -> None:
        self._tables = Tables(schema)
        self._database = Database(uri, _prepared)
        self._cells: Cells | None = None
        try:
            with self._database.reading() as connection:
                self.layout = read_layout(connection, self._tables, self.name)
            self.head = head_of(self.layout, head, self.name)
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls,
        uri: str,
        schema: str = "setnet",
        *,
        head: Aggregator | str = "sface-512",
        dim: int | None = None,
        partitions: int = 1,
        logistic: tuple[float, float] | Logistic = ELEMENT_LOGISTIC,
    ) -> PostgresSets:
        """Make the tables, or bring those of an earlier version up to date, and open them.

        Tables that are there already must have the same settings.

        Parameters
        ----------
        uri, schema
            As for the class; the schema is made if there is none.
        head
            What makes the set vectors: a shipped head, an aggregator of one bit per dimension, or ``"mean"``.
        dim
            Dimension of the elements; the head's by default.
        partitions
            Number of tables that items are divided among by a hash of their ids.
        logistic
            (w, b) for elements: a matched pair of similarity s adds sigmoid(w s + b) to an item's score.
        """
        made = one_bit_head(head, dim)
        layout = Layout.new(made, dim or made.element_dim or made.dim, partitions, logistic)
        tables, database = Tables(schema), Database(uri, partial(_prepared, create=True))
        try:
            with database.writing() as connection:
                make_layout(connection, tables, layout, database.name)
        finally:
            database.close()
        return cls(uri, schema, head=made)

    @property
    def name(self) -> str:
        """The connection string without password."""
        return self._database.name

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._database.close()

    def __enter__(self) -> PostgresSets:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._database.reading() as connection:
            row = connection.execute(self._tables.sql("SELECT count(*) FROM {items}")).fetchone()
        return int(row[0]) if row else 0

    def add(
        self,
        ids: Sequence[str],
        elements: ArrayLike,
        counts: ArrayLike,
        attributes: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> None:
        """Add items, or replace those whose id is stored already: all of them or, on any error, none.

        The arguments are those of `SetIndex.add`. Repeating a call changes nothing.
        """
        shape = self.layout.settings.shape
        batch, _ = checked_batch(ids, elements, counts, attributes, None, shape, self.head)
        refuse_nul(batch)
        if not batch.ids:
            return
        with self._database.writing() as connection:
            cells = self._known_cells(connection, "FOR SHARE")
            write_batch(connection, self._tables, batch, self.layout.bits, cells)

    def delete(self, ids: Sequence[str], *, missing_ok: bool = False) -> int:
        """Delete items and return how many there were.

        An id that is not stored is an error, and then nothing is deleted, unless ``missing_ok``.
        """
        names = check_ids(ids)
        with self._database.writing() as connection:
            self._known_cells(connection, "FOR SHARE")  # as `add`: never while cells are made anew
            return delete_items(connection, self._tables, names, missing_ok)

    def make_cells(self, count: int | None = None) -> int:
        """Divide the elements into cells, so that searches with ``mode="cells"`` read a part of the items.

        Without ``count`` their number follows from that of the elements; it is returned. Searches and writes
        go on meanwhile. Items added later go into the same cells; make them anew when the items have become
        many times more.
        """
        self._cells = make_cells(self._database, self._tables, self.layout.dim, count)
        return len(self._cells.centres)

    def search(
        self,
        query: QueryLike,
        k: int = 100,
        mode: str = "scan",
        *,
        candidates: int = CANDIDATES,
        probes: int = PROBES,
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
        mode
            ``"scan"``: the best ``candidates`` of all items by their set vectors; ``"cells"``: of the items
            in the cells nearest to the query (`make_cells`); ``"exact"``: all items, by their elements.
        candidates
            How many items are ranked by their elements. Conditions on elements hold among them, so that with
            strict ones fewer than k may be found though there are more.
        probes
            How many cells are read for each query element.
        where
            Conditions on attributes, as in `SetIndex.search`.
        **options
            ``at_least``, ``only``, ``without`` and ``examples``, as in `setnet.index.SearchOptions`.
        """
        if mode not in SEARCH_MODES:
            raise one_of("mode", mode, SEARCH_MODES)
        chosen = SearchOptions(k, candidates=candidates, probes=probes, where=where, **options)
        if mode == "exact" and chosen.examples != "aggregate":
            raise InvalidInputError("mode 'exact' in PostgreSQL takes examples='aggregate' only")
        asked = query_elements(query, self.layout.dim)
        clause = clause_of(where)
        with self._database.reading() as connection:
            search = PostgresSearch(connection, self._tables, self.layout, asked, clause, chosen)
            if mode == "scan":
                hits = search.by_set_vectors(self.head)
            elif mode == "cells":
                hits = search.by_cells(self.head, self._cells_made(connection))
            else:
                hits = search.exactly()
            if not hits and where:
                refuse_unknown(connection, self._tables, list(where))
        return hits

    def _cells_made(self, connection: Connection) -> Cells:
        cells = self._known_cells(connection)
        if not len(cells.centres):
            raise InvalidInputError(f"{self.name} has no cells: `setnet pg cells` makes them")
        return cells

    def _known_cells(self, connection: Connection, lock: str = "") -> Cells:
        self._cells = read_cells(connection, self._tables, self.layout.dim, self._cells, lock)
        return self._cells


def _prepared(connection: Connection, create: bool = False) -> None:
    use_vectors(connection, create)
    connection.adapters.register_dumper(Bits, BitsDumper)
