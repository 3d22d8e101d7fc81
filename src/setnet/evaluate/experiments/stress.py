"""Section 5.1: the stress test for every aggregator and head at hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from setnet.evaluate.bootstrap import people_draws
from setnet.evaluate.data.labelled_people import Halves
from setnet.evaluate.experiments.inputs import PAPER_DIFFICULTY, Inputs
from setnet.evaluate.experiments.running import OnProgress, running
from setnet.evaluate.methods.methods import Methods
from setnet.evaluate.methods.stress_measure import FACES, StressTest, element_similarities, set_similarities
from setnet.evaluate.report.record import Record, Row, Run
from setnet.evaluate.worlds.stress_world import stress_world
from setnet.sets import codec, unit

ELEMENTS = "descriptor per element"
ELEMENTS_WHITENED = "descriptor per element +W"
DEPTHS = (10, 30)


def stress(
    descriptors: Path | None = None,
    *,
    people: Path | None = None,
    difficulty: float = PAPER_DIFFICULTY,
    methods: Sequence[str] | None = None,
    heads: Sequence[str] | None = None,
    sets: int = 64_000,
    queries: int = 100,
    repeats: int = 10,
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
    settings = inputs.people_settings() | {"sets": sets, "queries": queries, "repeats": repeats}
    with running("stress", settings | inputs.head_settings(), json, progress, len(names) + 2) as run:
        run_stress(run, halves, fitted, names, sets=sets, queries=queries, repeats=repeats, seed=seed)
    return run.record()


def run_stress(
    run: Run,
    halves: Halves,
    methods: Methods,
    names: Sequence[str],
    *,
    sets: int = 64_000,
    queries: int = 100,
    repeats: int = 10,
    seed: int = 0,
) -> None:
    """Fill ``run`` with a row per method: nDCG@10 and @30 at 2 to 5 faces per set."""
    bounds = [ELEMENTS, ELEMENTS_WHITENED] if methods.whitens else [ELEMENTS]
    todo = [name for name in [*names, *bounds] if not run.has(name)]
    if not todo:
        return
    run.say("making the sets")
    people = halves.test
    world = stress_world(
        people.descriptors, people.labels, sets=sets, queries=queries, repeats=repeats, seed=seed
    )
    test = StressTest(world, DEPTHS)
    run.note(world=halves.name, queries=len(world.queries), examples=len(test.examples))
    for name in todo:
        run.say(name)
        run.add(_row(name, methods, test))


def _row(name: str, methods: Methods, test: StressTest) -> Row:
    started = time.monotonic()
    facts: dict[str, Any]
    bound = name in (ELEMENTS, ELEMENTS_WHITENED)
    if bound:
        whitened = name == ELEMENTS_WHITENED
        logistic = methods.element_logistic(whitened)
        similarities = element_similarities(test, FACES, methods.whitening if whitened else unit)
        size = codec.row_bytes(test.world.descriptors.shape[1], 32)
        facts = {"bytes": f"{size} per face", "bytes_per_item": None, "note": "every face stored"}
    else:
        method = methods.make(name)
        logistic = method.logistic
        similarities = set_similarities(method.aggregator, test)
        size = method.aggregator.bytes_per_item
        facts = {"bytes": size, "bytes_per_item": size, "note": method.note}
    values, draws = {}, {}
    for count, one in zip(FACES, similarities, strict=True):
        for depth, numbers in zip(DEPTHS, test.ndcg(one, logistic), strict=True):
            values[f"ndcg{depth}@{count}"] = numbers.mean(axis=1).tolist()
            drawn = people_draws([numbers.mean(axis=0)], [test.world.queries])
            draws[f"ndcg{depth}@{count}"] = drawn.round(4).tolist()
    facts |= {"w": logistic.w, "b": logistic.b, "seconds": round(time.monotonic() - started, 1)}
    return Row(name, values, facts, bound, draws)
