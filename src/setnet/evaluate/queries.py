"""Searching a world: its index, its queries, and the measures and times of their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Hit, SetIndex
from setnet.evaluate.measures import Measured, ranking_measures
from setnet.evaluate.worlds import World
from setnet.heads import Aggregator, Logistic, unit

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
ITEMS_AT_ONCE = 65_536
QUERIES_AT_ONCE = 64


def build_index(
    path: Path,
    world: World,
    aggregator: Aggregator | None,
    logistic: Logistic,
    set_logistic: Logistic | None = None,
    change: Callable[[Floats], Floats] | None = None,
) -> SetIndex:
    """Make an index of all items of a world; ``change`` may whiten the elements before they are stored."""
    index = SetIndex.create(
        path, world.dim, logistic=logistic, head=aggregator or "none", set_logistic=set_logistic
    )
    ids: list[str] = []
    elements: list[Floats] = []
    counts: list[Ints] = []

    def flush() -> None:
        if ids:
            index.add(ids, np.concatenate(elements), np.concatenate(counts))
        for batch in (ids, elements, counts):
            batch.clear()

    for chunk in world.chunks():
        ids += [str(chunk.first + i) for i in range(len(chunk.counts))]
        elements.append(change(chunk.elements) if change else chunk.elements)
        counts.append(chunk.counts)
        if len(ids) >= ITEMS_AT_ONCE:
            flush()
    flush()
    index.compact()
    return index


@dataclass(frozen=True, eq=False)
class QueryRunner:
    """A world's queries, and the measures of their answers against the ground truth."""

    world: World
    of_two: int = 500
    of_three: int = 500
    repeats: int = 3
    timed: int = 100

    @cached_property
    def queries(self) -> list[Ints]:
        """The people of each query."""
        return self.world.queries(self.of_two, self.of_three)

    @cached_property
    def _truth(self) -> list[dict[int, int]]:
        return [self.world.truth.relevance(query) for query in self.queries]

    def examples(self, repeat: int, each: int = 1) -> list[list[Floats]]:
        """Return, per query, one (each, dim) array of example faces per person."""
        faces = self.world.examples(repeat, each)
        return [[faces[int(p)] for p in query] for query in self.queries]

    def measure(self, query: int, found: Sequence[int]) -> dict[str, float]:
        """Return all measures of one ranking."""
        return ranking_measures(found, self._truth[query], len(self.queries[query]))

    def quality(self, search: Search, prepare: Prepare) -> Measured:
        """Return each measure's mean over queries; ``search`` takes a batch of queries."""
        values: dict[str, list[list[float]]] = {}
        for repeat in range(self.repeats):
            queries, found = prepare(self, repeat), []
            for start in range(0, len(queries), QUERIES_AT_ONCE):
                answers = search(queries[start : start + QUERIES_AT_ONCE])
                for number, hits in enumerate(answers, start):
                    found.append(self.measure(number, [int(hit.id) for hit in hits]))
            for key in found[0]:
                values.setdefault(key, []).append([one[key] for one in found])
        return Measured.of(values, [query.tolist() for query in self.queries])

    def timing(self, search: Callable[[Any], object], prepare: Prepare) -> list[float]:
        """Return the processor seconds of single queries, evenly taken from all, after five to warm up.

        Searches run on one thread, so that on an idle machine these are the seconds one waits.
        """
        queries = prepare(self, 0)
        chosen = np.linspace(0, len(queries) - 1, min(self.timed, len(queries))).astype(int)
        for at in chosen[:5]:
            search(queries[at])
        seconds = []
        for at in chosen:
            started = time.process_time()
            search(queries[at])
            seconds.append(time.process_time() - started)
        return seconds


Prepare = Callable[[QueryRunner, int], list[Any]]
Search = Callable[[list[Any]], Sequence[Sequence[Hit]]]


def by_faces(runner: QueryRunner, repeat: int) -> list[Any]:
    """Prepare queries of one example face per person."""
    return [np.concatenate(people) for people in runner.examples(repeat)]


def by_whitened_faces(change: Callable[[Floats], Floats]) -> Prepare:
    """Prepare the same for an index of whitened elements."""
    return lambda runner, repeat: [change(unit(rows)) for rows in by_faces(runner, repeat)]
