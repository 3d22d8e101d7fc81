"""Section 5.1: the stress test for every aggregator and head at hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from setnet.evaluate.methods import NOT_APPLICABLE, Methods
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.representations import CODE_BITS, SetVectors, code_name, element_bytes
from setnet.evaluate.settings import MethodSettings, experiment, setting
from setnet.evaluate.stress_trial import (
    FACES,
    Representation,
    StressTest,
    measure_ranking,
    ndcg_name,
    stress_world,
)
from setnet.evaluate.tables import CAPTION, Column, Table, result_table

TITLE = "Stress test (section 5.1)"

ELEMENTS = "descriptor per element"
ELEMENTS_WHITENED = "descriptor per element +W"
DEPTHS = (10, 30)
WORLD_STEP = 1000  # between the seeds of worlds


@dataclass(frozen=True, kw_only=True)
class Settings(MethodSettings):
    """Section 5.1: nDCG of every method as the number of faces per set grows from 2 to 5."""

    repeats: int = setting(4, "With other query faces each time.", minimum=1)
    worlds: int = setting(3, "Draw sets and queries so many times.", minimum=1)
    sets: int = setting(64_000, "Sets to search.", minimum=100)
    queries: int = setting(100, "How many queries.", minimum=1)


@experiment("stress")
def run(run: Run, settings: Settings) -> None:
    """Measure nDCG@10 and @30 at 2 to 5 faces per set: a row per method."""
    split = settings.train_test_split()
    methods = settings.fitted_methods(split, settings.sets)
    names = methods.chosen(settings.methods)
    kept = _elements_kept(methods)
    run.total = len(names) + len(kept)
    todo = [name for name in [*names, *kept] if not run.has(name)]
    if not todo:
        return
    run.say("making the sets")
    tests = [
        StressTest(
            stress_world(
                split.test.descriptors,
                split.test.labels,
                sets=settings.sets,
                queries=settings.queries,
                repeats=settings.repeats,
                seed=settings.seed + WORLD_STEP * number,
            ),
            DEPTHS,
        )
        for number in range(settings.worlds)
    ]
    run.note(world=split.name, queries=len(tests[0].world.queries), examples=len(tests[0].examples))
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
    ways = _elements_kept(methods)
    if name in ways:
        whitened, bits = ways[name]
        kept: Representation = methods.elements(whitened, bits)
        logistic = methods.element_logistic(whitened, bits)
        size = element_bytes(methods.train.dim, bits)
        facts = {"bytes": f"{size} per face", "bytes_per_item": None, "note": "every face stored"}
    else:
        method = methods.make(name)
        kept, logistic = SetVectors(method.aggregator), method.logistic
        size = method.aggregator.bytes_per_item
        facts = {"bytes": size, "bytes_per_item": size, "note": method.note}
    measured = measure_ranking(kept, tests, logistic)
    facts |= {"w": logistic.w, "b": logistic.b, "seconds": round(time.monotonic() - started, 1)}
    return Row(name, measured.values, facts, ways.get(name, (False, 0))[1] == 32, measured.draws)


def tables(record: Record) -> list[Table]:
    """Return a table of nDCG@10 and one of nDCG@30."""
    found = []
    for depth in DEPTHS:
        columns = [Column("bytes", "bytes", fact=True)]
        columns += [Column(ndcg_name(depth, count), f"{count} faces") for count in FACES]
        found.append(result_table(f"Stress test, nDCG@{depth}", record.rows, columns, CAPTION))
    return found
