"""The tables of the experiment on grouping."""

from __future__ import annotations

from dataclasses import replace

from setnet.evaluate.experiments.grouping import SHAPES
from setnet.evaluate.report.record import Record
from setnet.evaluate.report.tables import Column, Table, result_table

_BCUBED = ("precision", "recall", "f1")


def grouping_tables(record: Record) -> list[Table]:
    """Return ours beside other ways for each source of photos, then ours in libraries of other shapes."""
    note = (
        "BCubed, in percent. Thresholds are the best on the other half of the first file's people; "
        "setnet takes none. Found: people of two faces or more of whom half or more are in one group of "
        "their own. Seconds of CPU for 10,000 faces."
    )
    methods = [row for row in record.rows if row.facts.get("table") != SHAPES]
    tables = []
    sizes = zip(record.extra["sources"], record.extra["faces"], record.extra["people"], strict=True)
    for number, (source, faces, people) in enumerate(sizes):
        columns = [Column("threshold", "threshold", fact=True, digits=2)]
        columns += [Column(f"{name} {number}", name, digits=2) for name in _BCUBED]
        columns += [Column(f"found {number}", "found"), Column("seconds", "seconds", fact=True)]
        title = f"Grouping {faces:,} faces of {people:,} people: {source}"
        tables.append(result_table(title, methods, columns, note))
    return [*tables, *_shapes(record)]


def _shapes(record: Record) -> list[Table]:
    rows = [replace(row, bound=True) for row in record.rows if row.facts.get("table") == SHAPES]
    if not rows:
        return []
    columns = [Column(name, name, digits=0) for name in ("faces", "people")]
    columns += [Column(name, name, digits=2) for name in (*_BCUBED, "found")]
    note = (
        "setnet, with no setting changed, on other choices of the same people's faces. Mean ± standard error "
        "over repeats. Photos of several faces were put together at random; virtual people are drawn from "
        "the statistics of real descriptors."
    )
    table = result_table("Libraries of other shapes", rows, columns, note)
    return [replace(table, columns=("library", *table.columns[1:]))]
