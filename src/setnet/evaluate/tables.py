"""Tables of experiments: rows and columns to cells, and these to Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setnet.evaluate.record import Record, Row

CAPTION = (
    "Mean ± standard error over people and worlds. Bold: best by more than the standard error of its lead; "
    "upper bounds excluded."
)
FIRST = "Rank of first: of the first item with all query people, 1,000 when it is not among the {} hits."


@dataclass(frozen=True)
class Column:
    """A measure with its heading, or a fact when ``fact`` is set; ``lower`` when less is better."""

    key: str
    title: str
    fact: bool = False
    lower: bool = False
    digits: int = 1


@dataclass(frozen=True)
class Table:
    """Text cells with a heading; ``bold`` names cells (row, column)."""

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()
    note: str = ""

    def markdown(self) -> str:
        """Return the table for a document."""
        lines = [f"| {' | '.join(self.columns)} |", "|" + "---|" * len(self.columns)]
        for r, row in enumerate(self.cells):
            marked = [f"**{cell}**" if (r, c) in self.bold else cell for c, cell in enumerate(row)]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in marked)} |")
        note = f"\n{self.note}\n" if self.note else ""
        return f"**{self.title}**\n\n" + "\n".join(lines) + "\n" + note


def clear_best(rows: Sequence[Row], key: str, lower: bool = False, digits: int = 9) -> int | None:
    """Return which row is best by more than the standard error of its lead; None when none is.

    Nor is one that reads like the second at so many ``digits``. All methods see the same query faces, so the
    error is that of the differences.
    """
    entrants = [i for i, row in enumerate(rows) if not row.bound and row.values.get(key)]
    if len(entrants) < 2:
        return None
    sign = -1.0 if lower else 1.0
    ranked = sorted(entrants, key=lambda i: -sign * rows[i].estimate(key)[0])
    first, second = (rows[i] for i in ranked[:2])
    lead, error = first.lead(second, key)
    shows = round(first.estimate(key)[0], digits) != round(second.estimate(key)[0], digits)
    return ranked[0] if np.isfinite(error) and sign * lead > error and shows else None


def result_table(title: str, rows: Sequence[Row], columns: Sequence[Column], note: str = "") -> Table:
    """Return rows under the columns, each mean with its standard error."""
    cells = []
    bold = set()
    for c, column in enumerate(columns):
        best = None if column.fact else clear_best(rows, column.key, column.lower, column.digits)
        if best is not None:
            bold.add((best, c + 1))
    for row in rows:
        cells.append((row.name, *(_cell(row, column) for column in columns)))
    return Table(
        title, ("method", *(column.title for column in columns)), tuple(cells), frozenset(bold), note
    )


def _cell(row: Row, column: Column) -> str:
    if column.fact:
        fact = row.facts.get(column.key)
        if isinstance(fact, float):
            return f"{fact:,.{column.digits}f}"
        if isinstance(fact, int):
            return f"{fact:,}"
        return "" if fact is None else str(fact)
    if not row.values.get(column.key):
        return ""
    mean, error = row.estimate(column.key)
    text = f"{mean:.{column.digits}f}"
    return text if np.isnan(error) else f"{text} ± {error:.{column.digits + 1}f}"


def conditions(record: Record) -> str:
    """Return in one line what the numbers were made with."""
    machine, settings = record.machine, record.settings
    parts = [f"{key} {value}" for key, value in settings.items() if value not in (None, "", [])]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{record.extra.get('world', record.experiment)}. Settings: {'; '.join(parts)}. "
        f"{machine['processor']}, {machine['cores']} cores, kernels {machine['kernels']}, load "
        f"{machine['load']}; {machine['seconds']:g} s ({machine.get('cpu_seconds', 0):g} s of CPU), "
        f"peak {machine['peak_bytes'] / 1e9:.1f} GB; "
        f"{versions}; {machine['date']}."
    )
