"""Section 5.1: the stress test for every aggregator and head at hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from setnet.evaluate.data.people import Halves
from setnet.evaluate.methods.methods import Methods
from setnet.evaluate.methods.stress_scores import FACES, Judge, element_values, set_values
from setnet.evaluate.report.record import Row, Run
from setnet.evaluate.worlds.stress_world import stress_world
from setnet.sets import codec, unit

__all__ = ["ELEMENTS", "ELEMENTS_WHITENED", "run_stress"]

ELEMENTS = "descriptor per element"
ELEMENTS_WHITENED = "descriptor per element +W"

Say = Callable[[str], None]


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
    say: Say = lambda text: None,
) -> None:
    """Fill ``run`` with a row per method: nDCG@10 and @30 at 2 to 5 faces per set."""
    bounds = [ELEMENTS, ELEMENTS_WHITENED] if methods.whitens else [ELEMENTS]
    todo = [name for name in [*names, *bounds] if not run.has(name)]
    if not todo:
        return
    say("making the sets")
    test = halves.test
    world = stress_world(
        test.descriptors, test.labels, sets=sets, queries=queries, repeats=repeats, seed=seed
    )
    judge = Judge(world)
    run.note(world=halves.name, queries=len(world.queries), examples=len(judge.examples))
    for name in todo:
        say(name)
        started = time.monotonic()
        if name in (ELEMENTS, ELEMENTS_WHITENED):
            change = methods.whitening if name == ELEMENTS_WHITENED else unit
            logistic = methods.element_logistic(whitened=name == ELEMENTS_WHITENED)
            values = element_values(logistic, judge, FACES, change)
            size = codec.row_bytes(test.dim, 32)
            facts: dict[str, Any] = {
                "bytes": f"{size} per face",
                "bytes_per_item": None,
                "note": "every face stored",
            }
        else:
            method = methods.make(name)
            logistic = method.logistic
            values = set_values(method.aggregator, logistic, judge, FACES)
            size = method.aggregator.bytes_per_item
            facts = {"bytes": size, "bytes_per_item": size, "note": method.note}
        flat = {
            f"ndcg{depth}@{count}": numbers
            for count, by_depth in values.items()
            for depth, numbers in by_depth.items()
        }
        seconds = round(time.monotonic() - started, 1)
        facts |= {"w": logistic.w, "b": logistic.b, "seconds": seconds}
        run.add(Row(name, flat, facts, bound=name in (ELEMENTS, ELEMENTS_WHITENED)))
