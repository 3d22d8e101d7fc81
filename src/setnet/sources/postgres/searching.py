"""Searches in PostgreSQL: candidates by set vectors or by a bound in SQL, ranked by the engine's kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from setnet.index import Hit, RankedItems, SearchOptions, merged_examples, rank_given
from setnet.sets import Aggregator, Logistic
from setnet.sources.postgres.binary import Bits
from setnet.sources.postgres.connection import Connection
from setnet.sources.postgres.inverted_lists import Cells, fetched_elements
from setnet.sources.postgres.layout import Layout
from setnet.sources.postgres.table_names import Tables
from setnet.sources.postgres.where import Clause

Floats = NDArray[np.float32]

SEARCH_MODES = ("scan", "cells", "exact")


@dataclass(frozen=True, slots=True, eq=False)
class PostgresSearch:
    """One search on one state of the database: the query's elements, its conditions and its options."""

    connection: Connection
    tables: Tables
    layout: Layout
    query: list[Floats]
    where: Clause
    options: SearchOptions

    def by_set_vectors(self, head: Aggregator) -> list[Hit]:
        """Return the hits among the items with the best set vectors."""
        return self._ranked(self._best_sets(head, self.where)).hits()

    def by_cells(self, head: Aggregator, cells: Cells) -> list[Hit]:
        """Return the hits among the items with the best set vectors in the cells near the query."""
        clause, values = self.where
        near = cells.near(np.concatenate(self.query), self.options.probes or 1)
        where = sql.SQL("cells && %s::smallint[] AND {}").format(clause)
        return self._ranked(self._best_sets(head, (where, [near, *values]))).hits()

    def exactly(self) -> list[Hit]:
        """Return the hits among all items.

        An item's bound, the sum over query elements of the best similarity's score, is computed in SQL; items
        are ranked in falling order of it until no other can enter.
        """
        found = RankedItems.none(len(self.query))
        for bounds in self._bounded(max(self.options.candidates, self.options.k)):
            found = self._ranked([name for name, _ in bounds])
            # a bound comes from float32 dot products, a score from float64 ones
            if 0 < self.options.k <= len(found) and float(found.scores[-1]) > bounds[-1][1] + 1e-5:
                break
        return found.hits()

    def _bounded(self, candidates: int) -> Iterator[list[tuple[str, float]]]:
        """Yield the items with the highest bounds, ever more of them until they are all."""
        clause, values = self.where
        logistic = self.layout.settings.logistic
        each = [
            sql.SQL("max(")
            + _probability(sql.SQL("-(vector <#> %s::real[]::vector)"), logistic)
            + sql.SQL(")")
            for _ in self.query
        ]
        select = self.tables.sql(
            "SELECT item, {bound} AS bound FROM {elements} JOIN {items} ON id = item WHERE {where} "
            "GROUP BY item ORDER BY bound DESC, item LIMIT %s",
            bound=sql.SQL(" + ").join(each),
            where=clause,
        )
        rows = [merged_examples(examples)[0].tolist() for examples in self.query]
        while True:
            found = self.connection.execute(select, [*rows, *values, candidates]).fetchall()
            yield [(str(name), float(bound)) for name, bound in found]
            if len(found) < candidates:
                return
            candidates *= 4

    def _best_sets(self, head: Aggregator, where: Clause) -> list[str]:
        """Return the items with the best set vectors, by the Hamming distance of their bits."""
        clause, values = where
        rows = _described(head, self.query)
        similarity = _similarity(self.layout.bits)
        score = [_probability(similarity, self.layout.settings.set_logistic) for _ in rows]
        select = self.tables.sql(
            "SELECT id FROM {items} WHERE {where} ORDER BY {score} DESC, id LIMIT %s",
            score=sql.SQL(" + ").join(score),
            where=clause,
        )
        wanted = max(self.options.candidates, self.options.k)
        found = self.connection.execute(select, [*values, *Bits.of(rows), wanted])
        return [str(row[0]) for row in found]

    def _ranked(self, ids: list[str]) -> RankedItems:
        """Return the items ranked by the matching of their elements, fetched from the database."""
        if not ids:
            return RankedItems.none(len(self.query))
        ids = sorted(ids)  # of equal items the one with the lower id comes first
        elements, counts = fetched_elements(self.connection, self.tables, self.layout.dim, ids)
        here = [name for name, count in zip(ids, counts.tolist(), strict=True) if count]
        asked: Any = self.query
        return rank_given(
            here, elements, counts[counts > 0], asked, self.options, self.layout.settings.logistic
        )


def _described(head: Aggregator, query: list[Floats]) -> Floats:
    """Return one vector for the examples of each query element, in the space of set vectors."""
    return head.pool(np.concatenate(query), np.array([len(examples) for examples in query]))


def _similarity(bits: int) -> sql.Composed:
    """Return the similarity that the Hamming distance h of two codes of n bits stands for.

    Of two vectors at an angle a, a share a / pi of the signs differ; so their cosine is about sin(pi / 2 -
    pi h / n). The head's score was fitted to queries that are not quantised, whose similarity with a code is
    sqrt(2 / pi) of the cosine.
    """
    return sql.SQL("{} * sin({} - {} * (set_vector <~> %s))").format(
        sql.Literal(math.sqrt(2 / math.pi)), sql.Literal(math.pi / 2), sql.Literal(math.pi / bits)
    )


def _probability(similarity: sql.Composable, logistic: Logistic) -> sql.Composed:
    """Return sigmoid(w s + b) in SQL, by tanh: PostgreSQL's exp raises an error where it overflows."""
    return sql.SQL("(0.5::float8 + 0.5::float8 * tanh({} * ({}) + {}))").format(
        sql.Literal(logistic.w / 2), similarity, sql.Literal(logistic.b / 2)
    )
