"""Set retrieval in a world, with one or several examples per person (tables 4 to 6 of the paper)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine import SetIndex
from setnet.evaluate.inputs import (
    PAPER_DIFFICULTY,
    Inputs,
    OnProgress,
    Prepare,
    QueryRunner,
    Search,
    build_index,
    running,
)
from setnet.evaluate.methods import (
    CODE_BITS,
    NOT_APPLICABLE,
    Method,
    Methods,
    code_name,
    coded_elements,
    element_bytes,
)
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.worlds import StoredWorld, World
from setnet.heads import unit
from setnet.library.calibration import LabelledFaces
from setnet.library.person_matcher import person_vector

Floats = NDArray[np.float32]
Way = Callable[[Floats, Floats], Floats]  # examples and faces -> the faces' similarities

WAYS: dict[str, Way] = {
    "plain mean": lambda examples, faces: faces @ _mean(examples),
    "weighted mean": lambda examples, faces: faces @ person_vector(examples),
    "nearest example": lambda examples, faces: (faces @ examples.T).max(axis=1),
    "best of mean and nearest": lambda examples, faces: np.maximum(
        faces @ _mean(examples), 0.95 * (faces @ examples.T).max(axis=1)
    ),
    "mean of similarities": lambda examples, faces: faces @ examples.mean(axis=0),
}
RATES = (1e-4, 1e-5)


def recalls(
    faces: LabelledFaces, examples: int, wrong: int, trials: int, rng: np.random.Generator
) -> dict[str, list[float]]:
    """Return, for each way, the percentage of own faces found at each of `RATES` of false matches.

    Of a person's examples, so many are `wrong`: faces of somebody else, whose other faces count as strangers.
    Every trial weighs the same.
    """
    strangers: dict[str, list[Floats]] = {name: [] for name in WAYS}
    own: dict[str, list[Floats]] = {name: [] for name in WAYS}
    compared = 0
    for known, genuine, others in _trials(faces, examples, wrong, trials, rng):
        compared += len(others)
        for name, way in WAYS.items():
            far = way(known, faces.descriptors[others])
            strangers[name].append(far[far > 0.2])
            own[name].append(way(known, faces.descriptors[genuine]))
    return {name: [_recall(own[name], strangers[name], compared, rate) for rate in RATES] for name in WAYS}


def _trials(
    faces: LabelledFaces, examples: int, wrong: int, trials: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, NDArray[np.int64], NDArray[np.int64]]]:
    people = faces.people(examples - wrong + 1)
    for _ in range(max(1, trials // len(people))):
        for rows in people:
            mixed = rng.permutation(rows)
            chosen, genuine = mixed[: examples - wrong], mixed[examples - wrong :][:20]
            others = np.flatnonzero(faces.owner != faces.owner[rows[0]])
            odd = rng.choice(others, wrong, replace=False)
            strangers = np.setdiff1d(others, odd, assume_unique=True)
            yield faces.descriptors[np.concatenate([chosen, odd])], genuine, strangers


def _recall(own: list[Floats], strangers: list[Floats], compared: int, rate: float) -> float:
    far = np.concatenate(strangers)
    count = max(1, round(rate * compared))
    bar = np.partition(far, len(far) - count)[len(far) - count] if count <= len(far) else -1.0
    return float(100.0 * np.mean([np.mean(each >= bar) for each in own]))


def _mean(examples: Floats) -> Floats:
    mean: Floats = unit(examples.mean(axis=0, keepdims=True))[0]
    return mean


K = 30
ELEMENTS = "descriptor per element"
# Rows that keep every element, and the bits per dimension of each.
KEPT = {ELEMENTS: 32} | {code_name(bits): bits for bits in CODE_BITS}
# Suffix of a row's name, numbers of examples it makes sense for, search options.
VARIANTS: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
    ("", (1, 3), {}),
    (", query agg.", (1, 3), {"aggregate_query": True}),
    (", mean of scores", (3,), {"examples": "mean"}),
    (", max of scores", (3,), {"examples": "max"}),
)


def evaluate_retrieval(
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
    queries: int = 1000,
    merging: bool = True,
    repeats: int = 10,
    seed: int = 0,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Measure retrieval by set vectors alone on many items (section 5.2).

    Parameters are those of `stress`, and of `Inputs` for the items (``world``, ``scale``, ``items``,
    ``lists``). Half of the ``queries`` are of two people, half of three. ``merging`` also measures mean and
    max of the scores of three examples.
    """
    inputs = Inputs(descriptors, world, scale, items, difficulty, lists, people, heads, seed)
    halves = inputs.halves()
    made = inputs.items_of(halves)
    fitted = inputs.methods(halves)
    names = fitted.chosen(methods)
    settings = inputs.settings() | {"queries": queries, "repeats": repeats} | inputs.head_settings()
    runner = QueryRunner(made, queries // 2, queries - queries // 2, repeats)
    rows = len(names) * (len(VARIANTS) if merging else 2) + len(KEPT)
    with running("retrieval", settings, json, progress, rows) as run:
        run_retrieval(run, made, fitted, names, runner, merging=merging)
    return run.record()


def run_retrieval(
    run: Run,
    world: World,
    methods: Methods,
    names: Sequence[str],
    runner: QueryRunner,
    *,
    merging: bool = True,
) -> None:
    """Fill ``run`` with rows per method: with and without query aggregation, and ways to use examples."""
    variants = VARIANTS if merging else VARIANTS[:2]
    todo = [name for name in names if not all(run.has(name + suffix) for suffix, _, _ in variants)]
    if not todo and all(run.has(name) for name in KEPT):
        return
    run.note(world=world.name, items=world.size, faces=world.faces, queries=len(runner.queries))
    raw = methods.element_logistic()
    with tempfile.TemporaryDirectory(prefix="setnet-retrieval-") as made:
        run.say(f"making {world.size:,} items")
        stored = StoredWorld(world, Path(made) / "elements.f32")
        for number, name in enumerate(todo):
            run.say(f"{name}: fitting its score")
            method = methods.make(name)
            run.say(f"{name}: indexing {stored.size:,} items")
            path = Path(made) / f"i{number}"
            index = build_index(path, stored, method.aggregator, raw, method.logistic)
            for suffix, examples, options in variants:
                if not run.has(name + suffix):
                    run.say(name + suffix)
                    run.add(_row(name + suffix, method, index, runner, examples, options))
            index.close()
            SetIndex.destroy(path)
        _kept_rows(run, stored, methods, runner, Path(made) / "codes")
    for name in methods.not_applicable:
        if not run.has(name):
            run.add(Row(name, {}, {"bytes_per_item": NOT_APPLICABLE}))


def _kept_rows(run: Run, world: World, methods: Methods, runner: QueryRunner, path: Path) -> None:
    """Measure every element kept, in floats and in codes: the rivals of set vectors at their bytes."""
    for name, bits in KEPT.items():
        if run.has(name):
            continue
        run.say(name)
        logistic = methods.element_logistic(bits=bits)
        with build_index(path, world, None, logistic, change=coded_elements(bits)) as index:
            search = partial(index.search_many, k=K, mode="exact", threads=2)
            size = round(element_bytes(world.dim, bits) * world.faces / world.size)
            facts = {"bytes_per_item": size, "dim": world.dim, "note": "every element kept"}
            row = _measured_row(name, search, runner, (1, 3), facts | {"w": logistic.w, "b": logistic.b})
            run.add(replace(row, bound=bits == 32))
        SetIndex.destroy(path)


def _row(
    name: str,
    method: Method,
    index: SetIndex,
    runner: QueryRunner,
    examples: Sequence[int],
    options: dict[str, Any],
) -> Row:
    search = partial(index.search_many, k=K, mode="set", threads=2, **options)
    facts = {
        "bytes_per_item": method.aggregator.bytes_per_item,
        "dim": method.aggregator.dim,
        "note": method.note,
        "w": method.logistic.w,
        "b": method.logistic.b,
    }
    return _measured_row(name, search, runner, examples, facts)


def _measured_row(
    name: str, search: Search, runner: QueryRunner, examples: Sequence[int], facts: dict[str, Any]
) -> Row:
    started = time.monotonic()
    values: dict[str, list[float]] = {}
    draws: dict[str, list[float]] = {}
    for each in examples:
        measured = runner.quality(search, _by_examples(each))
        values |= {f"{key} n{each}": numbers for key, numbers in measured.values.items()}
        draws |= {f"{key} n{each}": numbers for key, numbers in measured.draws.items()}
    return Row(name, values, facts | {"seconds": round(time.monotonic() - started, 1)}, draws=draws)


def _by_examples(each: int) -> Prepare:
    return lambda runner, repeat: list(runner.examples(repeat, each))
