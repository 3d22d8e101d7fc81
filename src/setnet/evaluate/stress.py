"""Section 5.1: the stress test for every aggregator and head at hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from setnet.evaluate.methods import Methods
from setnet.evaluate.ranking_calibration import with_distractors
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.representations import (
    CODE_BITS,
    BudgetElements,
    SetVectors,
    code_name,
    element_bytes,
)
from setnet.evaluate.settings import MethodSettings, experiment, setting
from setnet.evaluate.stress_trial import (
    DISTRACTORS,
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
GAP = "Of the gap in nDCG@10 between mean pooling and all descriptors in floats."
WORLD_STEP = 1000  # between the seeds of worlds


@dataclass(frozen=True)
class ElementMethod:
    """A method that stores every face, and its size in words and in bytes."""

    make: Callable[[], Representation]
    size: str
    bytes: int | None = None
    is_bound: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings(MethodSettings):
    """Section 5.1: nDCG of every method as the number of faces per set grows from 2 to 5."""

    repeats: int = setting(4, "With other query faces each time.", minimum=1)
    worlds: int = setting(3, "Draw sets and queries so many times.", minimum=1)
    sets: int = setting(64_000, "Sets to search.", minimum=100)
    queries: int = setting(100, "How many queries.", minimum=1)
    budgets: Sequence[int] = setting(
        (), "Also keep a set's faces in so many bytes; repeatable.", "--bytes", metavar="BYTES", counts=False
    )

    def element_methods(self, methods: Methods) -> dict[str, ElementMethod]:
        """Return the rows that keep every face."""
        dim = methods.train.dim
        rows = {ELEMENTS: ElementMethod(methods.elements, f"{4 * dim} per face", is_bound=True)}
        for bits in CODE_BITS:
            size = f"{element_bytes(dim, bits)} per face"
            rows[code_name(bits)] = ElementMethod(partial(methods.elements, bits=bits), size)
        if methods.whitens:
            rows[ELEMENTS_WHITENED] = replace(rows[ELEMENTS], make=partial(methods.elements, whitened=True))
        for budget in self.budgets:
            name = f"budget codes, {budget} bytes"
            rows[name] = ElementMethod(partial(BudgetElements, budget), str(budget), budget)
        return rows


@experiment("stress")
def run(run: Run, settings: Settings) -> None:
    """Measure nDCG@10 and @30 at 2 to 5 faces per set: a row per method."""
    split = settings.train_test_split()
    methods = settings.fitted_methods(split, settings.sets)
    names = methods.chosen(settings.methods)
    kept = settings.element_methods(methods)
    run.total = len(names) + len(kept)
    todo = [name for name in [*names, *kept] if not run.has(name)]
    if not todo:
        return
    run.say("making the sets")
    tests = [
        StressTest(
            stress_world(
                split.test.descriptors,
                with_distractors(split.test.labels, settings.seed, DISTRACTORS),
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
        run.add(_row(name, kept.get(name), methods, tests))


def _row(name: str, stored: ElementMethod | None, methods: Methods, tests: Sequence[StressTest]) -> Row:
    started = time.monotonic()
    facts: dict[str, Any]
    if stored is not None:
        kept = stored.make()
        logistic = methods.fitted_logistic(kept)
        facts = {"bytes": stored.size, "bytes_per_item": stored.bytes, "note": "every face stored"}
    else:
        method = methods.make(name)
        kept, logistic = SetVectors(method.aggregator), method.logistic
        size = method.aggregator.bytes_per_item
        facts = {"bytes": size, "bytes_per_item": size, "note": method.note}
    measured = measure_ranking(kept, tests, logistic)
    facts |= {"w": logistic.w, "b": logistic.b, "seconds": round(time.monotonic() - started, 1)}
    return Row(name, measured.values, facts, stored is not None and stored.is_bound, measured.draws)


def tables(record: Record) -> list[Table]:
    """Return a table of nDCG@10 and one of nDCG@30."""
    found = []
    for depth in DEPTHS:
        columns = [Column("bytes", "bytes", fact=True)]
        columns += [Column(ndcg_name(depth, count), f"{count} faces") for count in FACES]
        found.append(result_table(f"Stress test, nDCG@{depth}", record.rows, columns, CAPTION))
    rows = {row.name: row for row in record.rows if row.values}
    if {"mean", ELEMENTS} <= rows.keys():
        found.append(_gap_table(rows))
    return found


def _gap_table(rows: Mapping[str, Row]) -> Table:
    """Return the share of the gap between mean pooling and floats that each row closes."""
    measures = [ndcg_name(10, count) for count in FACES]
    low, high = (np.array([rows[name].estimate(m)[0] for m in measures]) for name in ("mean", ELEMENTS))
    cells = []
    for name, row in rows.items():
        closed = 100 * (np.array([row.estimate(m)[0] for m in measures]) - low) / (high - low)
        cells.append((name, str(row.facts["bytes"]), *(f"{share:.0f}" for share in closed)))
    columns = ("method", "bytes", *(f"{count} faces" for count in FACES))
    return Table("Share of the gap closed, %", columns, tuple(cells), note=GAP)
