"""Section 5.1: the stress test for every aggregator and head at hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from setnet.evaluate.inputs import PAPER_DIFFICULTY, Inputs, OnProgress, running
from setnet.evaluate.measures import people_draws
from setnet.evaluate.methods import (
    CODE_BITS,
    NOT_APPLICABLE,
    Methods,
    code_name,
    coded_elements,
    element_bytes,
)
from setnet.evaluate.people import Halves
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.stress_trial import (
    FACES,
    PairSimilarities,
    StressTest,
    element_similarities,
    set_similarities,
    stress_world,
)
from setnet.heads import unit

ELEMENTS = "descriptor per element"
ELEMENTS_WHITENED = "descriptor per element +W"
DEPTHS = (10, 30)
WORLD_STEP = 1000  # between the seeds of worlds


def evaluate_stress(
    descriptors: Path | None = None,
    *,
    people: Path | None = None,
    difficulty: float = PAPER_DIFFICULTY,
    methods: Sequence[str] | None = None,
    heads: Sequence[str] | None = None,
    sets: int = 64_000,
    queries: int = 100,
    repeats: int = 4,
    worlds: int = 3,
    seed: int = 0,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Measure the nDCG of every method as the number of faces per set grows from 2 to 5 (section 5.1).

    Parameters
    ----------
    descriptors, people, difficulty
        Whose faces; see `Inputs`. Virtual people by default.
    methods
        Names of the methods to compare; all by default.
    heads
        Files of further heads, or of trained networks.
    sets, queries
        Size of the test; queries are of two people.
    repeats
        How often, with other query faces each time.
    worlds
        How many times sets and queries are drawn; errors are over people and worlds.
    seed
        Everything random follows from it.
    json
        Rows are kept in this file as they finish; the same call continues from it.
    progress
        Called with what is being done.
    """
    inputs = Inputs(descriptors, difficulty=difficulty, people=people, heads=heads, seed=seed)
    halves = inputs.halves()
    fitted = inputs.methods(halves, fitting_sets=min(6000, sets))
    names = fitted.chosen(methods)
    size = {"sets": sets, "queries": queries, "repeats": repeats, "worlds": worlds}
    settings = inputs.people_settings() | size | inputs.head_settings()
    rows = len(names) + len(_elements_kept(fitted))
    with running("stress", settings, json, progress, rows) as run:
        run_stress(run, halves, fitted, names, **size, seed=seed)
    return run.record()


def run_stress(
    run: Run,
    halves: Halves,
    methods: Methods,
    names: Sequence[str],
    *,
    sets: int = 64_000,
    queries: int = 100,
    repeats: int = 4,
    worlds: int = 3,
    seed: int = 0,
) -> None:
    """Fill ``run`` with a row per method: nDCG@10 and @30 at 2 to 5 faces per set."""
    todo = [name for name in [*names, *_elements_kept(methods)] if not run.has(name)]
    if not todo:
        return
    run.say("making the sets")
    people = halves.test
    tests = [
        StressTest(
            stress_world(
                people.descriptors,
                people.labels,
                sets=sets,
                queries=queries,
                repeats=repeats,
                seed=seed + WORLD_STEP * number,
            ),
            DEPTHS,
        )
        for number in range(worlds)
    ]
    run.note(world=halves.name, queries=len(tests[0].world.queries), examples=len(tests[0].examples))
    for name in todo:
        run.say(name)
        run.add(_row(name, methods, tests))
    for name in methods.not_applicable:
        if not run.has(name):
            run.add(Row(name, {}, {"bytes": NOT_APPLICABLE}))


def _elements_kept(methods: Methods) -> dict[str, tuple[bool, int]]:
    """Return the rows that keep every face: whether descriptors are whitened, and bits per dimension."""
    rows = {ELEMENTS: (False, 32)} | {code_name(bits): (False, bits) for bits in CODE_BITS}
    return rows | ({ELEMENTS_WHITENED: (True, 32)} if methods.whitens else {})


def _row(name: str, methods: Methods, tests: Sequence[StressTest]) -> Row:
    started = time.monotonic()
    facts: dict[str, Any]
    similarities: Callable[[StressTest], Iterator[PairSimilarities]]
    kept = _elements_kept(methods).get(name)
    if kept:
        whitened, bits = kept
        logistic = methods.element_logistic(whitened, bits)
        change = methods.whitening if whitened else unit
        similarities = partial(element_similarities, change=change, stored=coded_elements(bits))
        size = element_bytes(methods.train.dim, bits)
        facts = {"bytes": f"{size} per face", "bytes_per_item": None, "note": "every face stored"}
    else:
        method = methods.make(name)
        logistic = method.logistic
        similarities = partial(set_similarities, method.aggregator)
        size = method.aggregator.bytes_per_item
        facts = {"bytes": size, "bytes_per_item": size, "note": method.note}
    found = [[test.ndcg(one, logistic) for one in similarities(test)] for test in tests]
    queries = [test.world.queries for test in tests]
    values, draws = {}, {}
    for at, count in enumerate(FACES):
        for place, depth in enumerate(DEPTHS):
            numbers = [one[at][place] for one in found]
            values[f"ndcg{depth}@{count}"] = np.concatenate([one.mean(axis=1) for one in numbers]).tolist()
            drawn = people_draws([one.mean(axis=0) for one in numbers], queries)
            draws[f"ndcg{depth}@{count}"] = drawn.round(4).tolist()
    facts |= {"w": logistic.w, "b": logistic.b, "seconds": round(time.monotonic() - started, 1)}
    return Row(name, values, facts, kept is not None and kept[1] == 32, draws)
