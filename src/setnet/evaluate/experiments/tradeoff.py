"""Section 5.3: quality against time and bytes, through the real engine."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from setnet.evaluate.experiments.inputs import PAPER_DIFFICULTY, Inputs
from setnet.evaluate.experiments.query_runs import K as DEPTH
from setnet.evaluate.experiments.query_runs import (
    Prepare,
    QueryRunner,
    build_index,
    by_faces,
    by_whitened_faces,
)
from setnet.evaluate.experiments.running import OnProgress, running
from setnet.evaluate.methods.head_files import load_head
from setnet.evaluate.methods.methods import Method, Methods
from setnet.evaluate.methods.plain_scan import PlainElements, PlainSets, one_blas_thread
from setnet.evaluate.report.record import Record, Row, Run
from setnet.evaluate.worlds.stored_world import StoredWorld
from setnet.evaluate.worlds.worlds import World
from setnet.index import Hit, SetIndex
from setnet.sets import Logistic, Mean, codec

__all__ = [
    "EXACT",
    "EXACT_WHITENED",
    "PLAIN",
    "PLAIN_SETS",
    "RERANKED",
    "default_head",
    "row_count",
    "run_tradeoff",
    "tradeoff",
]

RERANKED = (100, 1000, 2000)
EXACT, EXACT_WHITENED = "per element", "per element +W"
OPTIMAL = "per element, optimal matching (20 queries)"
PLAIN = "per element, plain NumPy scan (20 queries)"
PLAIN_SETS = "per set (mean), plain NumPy scan (timed queries)"
FEW = 20


@dataclass(frozen=True, eq=False)
class _Line:
    """A row to be measured: how to prepare and search, and what it needs to store per item."""

    name: str
    prepare: Prepare
    options: dict[str, Any]
    size: float
    runner: QueryRunner | None = None
    bound: bool = False


def tradeoff(
    descriptors: Path | None = None,
    *,
    people: Path | None = None,
    difficulty: float = PAPER_DIFFICULTY,
    world: str | None = None,
    scale: float = 1.0,
    items: int = 50_000,
    lists: Path | None = None,
    methods: Sequence[str] | None = None,
    heads: Sequence[str] | None = None,
    baseline: str = "mean +W",
    queries: int = 1000,
    timed: int = 100,
    repeats: int = 2,
    work: Path | None = None,
    seed: int = 0,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Measure quality against time and bytes, in every mode of the engine (section 5.3).

    Parameters are those of `retrieval`, and the following.

    Parameters
    ----------
    methods
        Kinds of set vectors; by default the head of the fewest bytes.
    baseline
        A further kind of set vectors, re-ranked at one depth only.
    timed
        How many queries are timed one by one.
    work
        Keep the indexes in this folder.
    """
    inputs = Inputs(descriptors, world, scale, items, difficulty, lists, people, heads, seed)
    halves = inputs.halves()
    made = inputs.items_of(halves)
    fitted = inputs.methods(halves)
    names = fitted.chosen(methods) if methods else [default_head(fitted)]
    fitted.chosen([baseline])
    settings = inputs.settings() | {"queries": queries, "timed": timed, "repeats": repeats}
    runner = QueryRunner(made, queries // 2, queries - queries // 2, repeats, timed)
    rows = row_count(names, baseline)
    with running("tradeoff", settings | inputs.head_settings(), json, progress, rows) as run:
        run_tradeoff(run, made, fitted, names, baseline, runner, work=work)
    return run.record()


def run_tradeoff(
    run: Run,
    world: World,
    methods: Methods,
    heads: Sequence[str],
    baseline: str,
    runner: QueryRunner,
    *,
    work: Path | None = None,
) -> None:
    """Fill ``run`` with a row per way of searching."""
    run.note(world=world.name, items=world.size, faces=world.faces, queries=len(runner.queries), k=DEPTH)
    raw = methods.element_logistic()
    with _folder(work) as folder:
        run.say(f"making {world.size:,} items")
        world = StoredWorld(world, folder / "elements.f32")
        runner = QueryRunner(world, runner.of_two, runner.of_three, runner.repeats, runner.timed)
        _plain_rows(run, world, runner, methods, raw)
        for number, name in enumerate([*heads, baseline]):
            rest = [] if number else [EXACT, OPTIMAL, "tags", "tags, re-rank 2000"]
            lines = _set_lines(name, RERANKED if name in heads else (2000,))
            if all(run.has(line) for line in [*lines, *rest]):
                continue
            run.say(f"{name}: fitting its score")
            method = methods.make(name)
            index = _built(run, folder / f"i{number}", world, method, raw, None)
            try:
                _measure_sets(run, index, runner, _set_rows(method, world, lines))
                if not number:
                    _measure(run, index, runner, _element_rows(world, runner, EXACT, by_faces))
                    _tag_rows(run, index, runner, world, "tags", None)
            finally:
                index.close()
        names = [EXACT_WHITENED, "tags +W", "tags +W, re-rank 2000"]
        if not all(run.has(name) for name in names):
            whitened = methods.element_logistic(whitened=True)
            index = _built(run, folder / "w", world, None, whitened, methods)
            try:
                prepare = by_whitened_faces(methods.whitening)
                _measure(run, index, runner, _element_rows(world, runner, EXACT_WHITENED, prepare))
                _tag_rows(run, index, runner, world, "tags +W", methods)
            finally:
                index.close()


def default_head(methods: Methods) -> str:
    """Return the head of the fewest bytes: wider ones are searched more slowly; the mean if there is none."""
    loaded = {name: load_head(name) for name in methods.head_names()}
    return min(loaded, key=lambda name: loaded[name].bytes_per_item, default="mean")


def row_count(heads: Sequence[str], baseline: str) -> int:
    """Return how many rows a run has."""
    return sum(len(_set_lines(name, RERANKED)) for name in heads) + len(_set_lines(baseline, (2000,))) + 9


def _set_lines(name: str, reranked: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return the rows of one kind of set vectors and the search options of each."""
    lines: dict[str, dict[str, Any]] = {}
    for suffix, more in (("", {}), (", query agg.", {"aggregate_query": True})):
        lines[f"{name}{suffix}"] = {"mode": "set", **more}
        for count in reranked:
            lines[f"{name}, re-rank {count}{suffix}"] = {"mode": "fast", "candidates": count, **more}
    return lines


def _set_rows(method: Method, world: World, lines: dict[str, dict[str, Any]]) -> list[_Line]:
    set_bytes = method.aggregator.bytes_per_item
    return [
        _Line(name, by_faces, options, set_bytes + (_face_bytes(world) if options["mode"] == "fast" else 0))
        for name, options in lines.items()
    ]


def _element_rows(world: World, runner: QueryRunner, name: str, prepare: Prepare) -> list[_Line]:
    size = _face_bytes(world)
    lines = [_Line(name, prepare, {"mode": "exact"}, size, bound=True)]
    if name == EXACT:
        few = _few(runner)
        lines.append(_Line(OPTIMAL, prepare, {"mode": "exact", "matching": "optimal"}, size, few, bound=True))
    return lines


def _few(runner: QueryRunner) -> QueryRunner:
    return QueryRunner(runner.world, FEW // 2, FEW // 2, runner.repeats, FEW)


def _face_bytes(world: World) -> float:
    """Bytes of an item's elements: float32 vectors, their 8-bit codes and the high halves of these."""
    codes = [codec.row_bytes(world.dim, bits) + 4 for bits in (8, 4)]  # with a scale each
    return (codec.row_bytes(world.dim, 32) + sum(codes)) * world.faces / world.size


def _measure(run: Run, index: SetIndex, runner: QueryRunner, lines: Sequence[_Line]) -> None:
    for line in lines:
        if run.has(line.name):
            continue
        run.say(line.name)
        chosen = line.runner or runner
        values = chosen.quality(partial(index.search_many, k=DEPTH, threads=2, **line.options), line.prepare)
        seconds = chosen.timing(partial(index.search, k=DEPTH, threads=1, **line.options), line.prepare)
        _add(run, line.name, values, seconds, line.size, line.bound)


def _measure_sets(run: Run, index: SetIndex, runner: QueryRunner, lines: Sequence[_Line]) -> None:
    """Measure set vectors alone and re-ranked: the candidates of all rows are the first of one ranking."""
    for together in (False, True):
        todo = [
            line
            for line in lines
            if line.options.get("aggregate_query", False) == together and not run.has(line.name)
        ]
        if not todo:
            continue
        run.say(todo[0].name)
        values = runner.qualities(partial(_reranked, index, todo, together), by_faces)
        for line in todo:
            run.say(line.name)
            seconds = runner.timing(partial(index.search, k=DEPTH, threads=1, **line.options), by_faces)
            _add(run, line.name, values[line.name], seconds, line.size, line.bound)


def _reranked(
    index: SetIndex, lines: Sequence[_Line], together: bool, queries: list[Any]
) -> list[dict[str, list[Hit]]]:
    deepest = max(line.options.get("candidates", DEPTH) for line in lines)
    found = index.search_many(queries, k=deepest, mode="set", aggregate_query=together, threads=2)
    return [
        {line.name: _among(index, people, hits, line.options) for line in lines}
        for people, hits in zip(queries, found, strict=True)
    ]


def _among(index: SetIndex, people: Any, hits: list[Hit], options: dict[str, Any]) -> list[Hit]:
    if options["mode"] == "set":
        return hits[:DEPTH]
    return index.rerank(people, [hit.id for hit in hits[: options["candidates"]]], DEPTH)


def _add(
    run: Run, name: str, values: dict[str, list[float]], seconds: list[float], size: float | None, bound: bool
) -> None:
    facts: dict[str, Any] = {
        "mean_ms": 1000 * float(np.mean(seconds)),
        "median_ms": 1000 * float(np.median(seconds)),
        "bytes_per_item": None if size is None else round(size),
    }
    plain = run.rows.get(PLAIN)
    if plain is not None:
        facts["speedup"] = plain.facts["mean_ms"] / facts["mean_ms"]
    run.add(Row(name, values, facts, bound=bound))


def _plain_rows(run: Run, world: World, runner: QueryRunner, methods: Methods, raw: Logistic) -> None:
    """Measure the searches without an engine first: others are compared with them."""
    kinds: list[tuple[str, QueryRunner]] = [(PLAIN, _few(runner)), (PLAIN_SETS, runner)]
    for name, chosen in kinds:
        if run.has(name):
            continue
        run.say(name)
        plain: PlainElements | PlainSets
        if name == PLAIN:
            plain, logistic = PlainElements(world), raw
        else:
            plain, logistic = PlainSets(world, Mean(world.dim)), methods.make("mean").logistic
        search = partial(plain.search, k=DEPTH, logistic=logistic)
        with one_blas_thread():
            seconds = chosen.timing(search, by_faces)
        found = [
            chosen.measured(q, search(people).tolist())
            for q, people in enumerate(by_faces(chosen, 0)[: len(seconds)])
        ]
        values = {key: [float(np.mean([one[key] for one in found]))] for key in found[0]}
        vectors = world.faces / world.size if name == PLAIN else 1
        size = codec.row_bytes(world.dim, 32) * vectors
        _add(run, name, values, seconds, size, bound=True)


def _tag_rows(
    run: Run, index: SetIndex, runner: QueryRunner, world: World, name: str, methods: Methods | None
) -> None:
    """Measure pre-tagging with ten examples per identity, and re-ranking by the one example of the query."""
    reranked = f"{name}, re-rank 2000"
    if run.has(name) and run.has(reranked):
        return
    run.say(f"{name}: tagging every item")
    gallery = world.gallery(10)
    if methods is not None:
        gallery = np.stack([methods.whitening(examples) for examples in gallery])
    started = time.perf_counter()
    entries = index.tag({str(i): examples for i, examples in enumerate(gallery)})
    run.note(**{f"{name} seconds": round(time.perf_counter() - started, 1), f"{name} entries": entries})

    def by_names(chosen: QueryRunner, repeat: int) -> list[Any]:
        return [[str(p) for p in query] for query in chosen.queries]

    def by_both(chosen: QueryRunner, repeat: int) -> list[Any]:
        change = methods.whitening if methods is not None else (lambda rows: rows)
        faces = [[change(face) for face in people] for people in chosen.examples(repeat)]
        return [
            {str(p): face for p, face in zip(query, rows, strict=True)}
            for query, rows in zip(chosen.queries, faces, strict=True)
        ]

    size = 8 * entries / world.size
    lines = [
        _Line(name, by_names, {"mode": "tags"}, size),
        _Line(reranked, by_both, {"mode": "tags", "candidates": 2000}, size + _face_bytes(world)),
    ]
    _measure(run, index, runner, lines)


def _built(
    run: Run,
    path: Path,
    world: World,
    method: Method | None,
    logistic: Logistic,
    whiten: Methods | None,
) -> SetIndex:
    name = method.name if method else "whitened elements"
    run.say(f"{name}: indexing {world.size:,} items")
    if path.exists():
        shutil.rmtree(path)
    started = time.perf_counter()
    index = build_index(
        path,
        world,
        method.aggregator if method else None,
        logistic,
        method.logistic if method else None,
        whiten.whitening if whiten else None,
    )
    stats = index.stats()
    run.note(**{f"index {name}": {"seconds": round(time.perf_counter() - started, 1), "bytes": stats.bytes}})
    return index


@contextmanager
def _folder(work: Path | None) -> Iterator[Path]:
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
        yield work
        return
    with tempfile.TemporaryDirectory(prefix="setnet-tradeoff-") as made:
        yield Path(made)
