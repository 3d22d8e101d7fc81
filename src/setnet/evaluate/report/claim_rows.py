"""The rows of a claim's record over all training seeds, and SetNet's lead over the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from setnet.evaluate.methods.stress_measure import FACES
from setnet.evaluate.report.record import Record, Row


def measure(depth: int, elements: int, test: str = "") -> str:
    """Return the name of a measure: nDCG of a test (the main one is "") with so many elements to a set.

    >>> measure(10, 2), measure(30, 5, "held-out typefaces")
    ('ndcg10@2', 'ndcg30@5 held-out typefaces')
    """
    return f"ndcg{depth}@{elements} {test}".rstrip()


def over_seeds(record: Record) -> list[Row]:
    """Return one row per method; its values are lists over training seeds of lists over worlds.

    A method that some seed has not been measured with is left out, so that all rows are about the same seeds.
    """
    groups: dict[str, list[Row]] = {}
    several = len({row.facts["loss"] for row in record.rows} - {""}) > 1
    for row in record.rows:
        loss = row.facts["loss"]
        name = f"{row.facts['row']}, {loss}" if loss and several else row.facts["row"]
        groups.setdefault(name, []).append(row)
    seeds = max((len(rows) for rows in groups.values()), default=0)
    return [_joined(name, rows) for name, rows in groups.items() if len(rows) == seeds]


def _joined(name: str, rows: Sequence[Row]) -> Row:
    facts = dict(rows[0].facts)
    if "gram" in facts:
        facts["gram"] = float(np.mean([row.facts["gram"] for row in rows]))
    values, draws = (
        {key: [cast(Sequence[float], part[key]) for part in parts] for key in parts[0]}
        for parts in ([row.values for row in rows], [row.draws for row in rows])
    )
    return Row(name, values, facts, rows[0].bound, draws)


@dataclass(frozen=True)
class Lead:
    """By how much a method is ahead of the best baseline at some number of elements."""

    elements: int
    baseline: str
    points: float
    error: float


def leads(rows: Sequence[Row], name: str, test: str = "") -> list[Lead]:
    """Return the lead of a row over the pooled baseline that is best at each number of elements.

    The baseline is chosen after the fact, which favours it; the error is that of the differences, over
    people, worlds and seeds.
    """
    ours = next(row for row in rows if row.name == name)
    loss = ours.facts["loss"]
    pooled = [row for row in rows if row.name.startswith("Baseline") and row.facts["loss"] in ("", loss)]
    found = []
    for count in FACES:
        key = measure(10, count, test)
        best = max(pooled, key=lambda row: row.estimate(key)[0])
        found.append(Lead(count, best.name, *ours.lead(best, key)))
    return found


def is_reproduced(rows: Sequence[Row], name: str) -> bool:
    """Return whether a row leads at every number of elements by more than twice the error of its lead."""
    return all(lead.points > 2 * lead.error for lead in leads(rows, name))
