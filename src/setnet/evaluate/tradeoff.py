"""Section 5.3: quality against time and bytes, through the real engine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Hit, SetIndex
from setnet.evaluate.baselines import PlainElements, PreTags
from setnet.evaluate.measures import Measured
from setnet.evaluate.methods import Methods
from setnet.evaluate.queries import Prepare, QueryRunner, build_index, by_faces, by_whitened_faces
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.settings import WorldSettings, experiment, setting
from setnet.evaluate.tables import CAPTION, FIRST, Column, Table, result_table
from setnet.evaluate.worlds import StoredWorld, World
from setnet.heads import Aggregator, Logistic, codec

TITLE = "Quality against time and bytes (section 5.3)"

Change = Callable[[NDArray[np.float32]], NDArray[np.float32]]
DEPTH = 100
RERANKED = (100, 1000, 2000)
EXACT, EXACT_WHITENED = "per element", "per element +W"
CODES = "one bit per element, re-rank 2000"
OPTIMAL = "per element, optimal matching (20 queries)"
GREEDY = "per element, greedy matching (20 queries)"
PLAIN = "per element, plain NumPy scan (20 queries)"
FEW = 20
BASELINE = "mean +W"


@dataclass(frozen=True, eq=False)
class _Line:
    """A row to be measured: how to prepare and search, and what it needs to store per item."""

    name: str
    prepare: Prepare
    options: dict[str, Any]
    size: float
    bound: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings(WorldSettings):
    """Section 5.3: quality against time and bytes, every mode of the engine, re-ranking and tags."""

    repeats: int = setting(2, "With other query faces each time.", minimum=1)
    methods: Sequence[str] = setting(
        (), "Set vectors to try; repeatable [default: one head].", "--method", metavar="NAME", counts=False
    )
    timed: int = setting(100, "Queries timed one by one.", minimum=1)


@experiment("tradeoff")
def run(run: Run, settings: Settings) -> None:
    """Measure quality, time and bytes: a row per way of searching."""
    split = settings.train_test_split()
    world = settings.make_world(split)
    methods = settings.fitted_methods(split)
    names = methods.chosen(settings.methods or [default_head(methods)])
    methods.chosen([BASELINE])
    pairs = settings.queries // 2
    runner = QueryRunner(world, pairs, settings.queries - pairs, settings.repeats, settings.timed)
    run.total = (
        sum(len(_set_lines(name, RERANKED)) for name in names) + len(_set_lines(BASELINE, (2000,))) + 10
    )
    run.note(world=world.name, items=world.size, faces=world.faces, queries=len(runner.queries), k=DEPTH)
    with tempfile.TemporaryDirectory(prefix="setnet-tradeoff-") as temporary:
        folder = Path(temporary)
        run.say(f"making {world.size:,} items")
        rows = _Rows(run, methods, StoredWorld(world, folder / "elements.f32"), runner, folder)
        rows.plain()
        for number, name in enumerate([*names, BASELINE]):
            rows.of_sets(name, RERANKED if name in names else (2000,), number)
        rows.of_whitened_faces()


def default_head(methods: Methods) -> str:
    """Return the head of 128 bytes: wider ones are searched more slowly; the mean if there is none."""
    names = methods.names()
    return next((name for name in ("sface-128", "lift-128") if name in names), "mean")


def _set_lines(name: str, reranked: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return the rows of one kind of set vectors and the search options of each."""
    lines: dict[str, dict[str, Any]] = {}
    for suffix, more in (("", {}), (", query agg.", {"aggregate_query": True})):
        lines[f"{name}{suffix}"] = {"mode": "set", **more}
        for count in reranked:
            options = {"mode": "fast", "first": "sets", "candidates": count}
            lines[f"{name}, re-rank {count}{suffix}"] = options | more
    return lines


class _Rows:
    """The rows of a run, each measured once, on one world and its queries."""

    def __init__(self, run: Run, methods: Methods, world: World, runner: QueryRunner, folder: Path) -> None:
        self.run, self.methods, self.world, self.folder = run, methods, world, folder
        self.runner = replace(runner, world=world)
        self.few = replace(self.runner, of_two=FEW // 2, of_three=FEW // 2, timed=FEW)
        # An item's elements: float32 vectors, and their codes of nine bits with 8 bytes of norms.
        self.face_bytes = (4 * world.dim + 9 * world.dim / 8 + 8) * world.faces / world.size

    @cached_property
    def logistic(self) -> Logistic:
        """The (w, b) of single descriptors."""
        return self.methods.element_logistic()

    def plain(self) -> None:
        """Measure the search without an engine first: others are compared with it."""
        if self.run.has(PLAIN):
            return
        self.run.say(PLAIN)
        runner, plain = self.few, PlainElements(self.world)
        search = partial(plain.search, k=DEPTH, logistic=self.logistic)
        seconds = runner.timing(search, by_faces)
        found = [
            runner.measure(query, search(people).tolist())
            for query, people in enumerate(by_faces(runner, 0)[: len(seconds)])
        ]
        people = [query.tolist() for query in runner.queries[: len(found)]]
        values = Measured.of({key: [[one[key] for one in found]] for key in found[0]}, people)
        size = codec.row_bytes(self.world.dim, 32) * self.world.faces / self.world.size
        self._add(_Line(PLAIN, by_faces, {}, size, bound=True), values, seconds)

    def of_sets(self, name: str, reranked: Sequence[int], number: int) -> None:
        """Measure one kind of set vectors; in the first one's index also the faces themselves, and tags."""
        options = _set_lines(name, reranked)
        others = [] if number else [EXACT, CODES, OPTIMAL, GREEDY, "tags", "tags, re-rank 2000"]
        if self._done([*options, *others]):
            return
        self.run.say(f"{name}: fitting its score")
        method = self.methods.make(name)
        index = self._built(f"i{number}", name, self.logistic, method.aggregator, method.logistic)
        with index:
            set_bytes = method.aggregator.bytes_per_item
            for row, more in options.items():
                size = set_bytes + (self.face_bytes if more["mode"] == "fast" else 0)
                self._measure(index, _Line(row, by_faces, more, size))
            if not number:
                optimal = {"mode": "exact", "matching": "optimal"}
                self._measure(index, _Line(EXACT, by_faces, {"mode": "exact"}, self.face_bytes, bound=True))
                self._measure(index, _Line(CODES, by_faces, {"mode": "fast"}, self.face_bytes))
                for name, matching in ((OPTIMAL, optimal), (GREEDY, {"mode": "exact"})):
                    line = _Line(name, by_faces, matching, self.face_bytes, bound=True)
                    self._measure(index, line, self.few)
                self._tags(index, "tags", lambda rows: rows)

    def of_whitened_faces(self) -> None:
        """Measure an index of whitened elements."""
        if self._done([EXACT_WHITENED, "tags +W", "tags +W, re-rank 2000"]):
            return
        whitening = self.methods.whitening
        logistic = self.methods.element_logistic(whitened=True)
        with self._built("w", "whitened elements", logistic, change=whitening) as index:
            prepare = by_whitened_faces(whitening)
            line = _Line(EXACT_WHITENED, prepare, {"mode": "exact"}, self.face_bytes, bound=True)
            self._measure(index, line)
            self._tags(index, "tags +W", whitening)

    def _done(self, names: Sequence[str]) -> bool:
        return all(self.run.has(name) for name in names)

    def _built(
        self,
        folder: str,
        name: str,
        logistic: Logistic,
        aggregator: Aggregator | None = None,
        set_logistic: Logistic | None = None,
        change: Change | None = None,
    ) -> SetIndex:
        self.run.say(f"{name}: indexing {self.world.size:,} items")
        path = self.folder / folder
        started = time.perf_counter()
        index = build_index(path, self.world, aggregator, logistic, set_logistic, change)
        seconds = round(time.perf_counter() - started, 1)
        self.run.note(**{f"index {name}": {"seconds": seconds, "bytes": index.stats().bytes}})
        return index

    def _measure(self, index: SetIndex, line: _Line, runner: QueryRunner | None = None) -> None:
        if self.run.has(line.name):
            return
        self.run.say(line.name)
        chosen = runner or self.runner
        values = chosen.quality(partial(index.search_many, k=DEPTH, threads=2, **line.options), line.prepare)
        self._add(line, values, self._seconds(index, line, chosen))

    def _tags(self, index: SetIndex, name: str, change: Change) -> None:
        """Measure pre-tagging with ten examples per identity, and re-ranking by the query's one example."""
        reranked = f"{name}, re-rank 2000"
        if self._done([name, reranked]):
            return
        self.run.say(f"{name}: tagging every item")
        gallery = {str(i): change(examples) for i, examples in enumerate(self.world.gallery(10))}
        started = time.perf_counter()
        tags = PreTags(gallery, index.logistic)
        for chunk in self.world.chunks():
            tags.add(
                [str(chunk.first + i) for i in range(len(chunk.counts))], change(chunk.elements), chunk.counts
            )
        seconds = round(time.perf_counter() - started, 1)
        self.run.note(**{f"{name} seconds": seconds, f"{name} entries": tags.entries})

        def by_names(runner: QueryRunner, repeat: int) -> list[Any]:
            return [[str(p) for p in query] for query in runner.queries]

        def by_both(runner: QueryRunner, repeat: int) -> list[Any]:
            return [
                {str(p): change(face) for p, face in zip(query, faces, strict=True)}
                for query, faces in zip(runner.queries, runner.examples(repeat), strict=True)
            ]

        def search_again(query: dict[str, Any]) -> Sequence[Hit]:
            found = [hit.id for hit in tags.search(list(query), k=2000)]
            return index.rerank(list(query.values()), found, DEPTH) if found else []

        size = 8 * tags.entries / self.world.size
        self._measure_tags(_Line(name, by_names, {}, size), partial(tags.search, k=DEPTH))
        self._measure_tags(_Line(reranked, by_both, {}, size + self.face_bytes), search_again)

    def _measure_tags(self, line: _Line, search: Callable[[Any], Sequence[Hit]]) -> None:
        if not self.run.has(line.name):
            self.run.say(line.name)
            values = self.runner.quality(lambda queries: [search(query) for query in queries], line.prepare)
            self._add(line, values, self.runner.timing(search, line.prepare))

    def _seconds(self, index: SetIndex, line: _Line, runner: QueryRunner) -> list[float]:
        return runner.timing(partial(index.search, k=DEPTH, threads=1, **line.options), line.prepare)

    def _add(self, line: _Line, measured: Measured, seconds: Sequence[float] = ()) -> None:
        facts: dict[str, Any] = {"bytes_per_item": round(line.size)}
        if seconds:
            facts["mean_ms"] = 1000 * float(np.mean(seconds))
            facts["median_ms"] = 1000 * float(np.median(seconds))
        plain = self.run.rows.get(PLAIN)
        if plain is not None and seconds:
            facts["speedup"] = plain.facts["mean_ms"] / facts["mean_ms"]
        self.run.add(Row(line.name, measured.values, facts, line.bound, measured.draws))


def tables(record: Record) -> list[Table]:
    """Return the table of all rows."""
    columns = [
        Column("ndcg10", "nDCG@10"),
        Column("ndcg30", "nDCG@30"),
        Column("recall30", "full matches in 30"),
        Column("first", "rank of first", lower=True),
        Column("mean_ms", "mean ms", fact=True, digits=2),
        Column("median_ms", "median ms", fact=True, digits=2),
        Column("speedup", "speed-up", fact=True),
        Column("bytes_per_item", "bytes", fact=True),
    ]
    note = (
        CAPTION
        + f" {FIRST.format(100)}"
        + " Processor time of one query on one thread, 100 hits; speed-up over the plain NumPy scan of every "
        "face in the same run. Bytes per item: set vector, plus float32 elements and their codes "
        "of nine bits where the search reads them."
    )
    return [result_table("Quality against time and bytes", record.rows, columns, note)]
