"""The tables of the experiment on matching."""

from __future__ import annotations

from setnet.evaluate.experiments.matching import KINDS, SITUATIONS, SIZES
from setnet.evaluate.report.record import Record, Row
from setnet.evaluate.report.tables import Column, Table, result_table


def matching_tables(record: Record) -> list[Table]:
    """Return order, what several examples change, the two bands, absent and alike people, probabilities."""
    found = [
        _order(record),
        _ways(record),
        _bands(record),
        _absent(record),
        _alike(record),
        _reliability(record),
    ]
    return [table for table in found if table.cells]


def _rows(record: Record, table: str) -> list[Row]:
    return [row for row in record.rows if row.facts["table"] == table]


def _order(record: Record) -> Table:
    columns = [Column(name, name, digits=2) for name in KINDS.values()]
    sizes = ", ".join(f"{size:,}" for size in (*SIZES, record.settings.get("faces", SIZES[-1])))
    note = (
        "nDCG@10 of photos composed of people who are in photos together, in libraries of "
        f"{sizes} faces, which virtual people fill up, for 1, 3 and 10 examples. An absent person is in no "
        "photo; a group is all faces of a person in the library. Mean ± standard error over queries."
    )
    return result_table("Order: nDCG@10 by the people asked for", _rows(record, "order"), columns, note)


def _ways(record: Record) -> Table:
    columns = [Column(f"{situation} at 1e-05", situation, digits=2) for situation in SITUATIONS]
    note = (
        "Percentage of a person's other faces found where one stranger in 100,000 is taken for them. A wrong "
        "example shows somebody else, whose faces count as strangers'. Mean ± standard error over repeats."
    )
    return result_table("Several examples of a person", _rows(record, "ways"), columns, note)


def _bands(record: Record) -> Table:
    columns = [
        Column("sure", "sure from", fact=True, digits=3),
        Column("maybe", "maybe from", fact=True, digits=3),
        Column("recall_sure", "sure, %", fact=True),
        Column("recall_maybe", "sure or maybe, %", fact=True),
        Column("false_sure", "false sure per million", fact=True, digits=2),
        Column("bound", "at most (95 %)", fact=True, digits=2),
        Column("false_maybe", "false per 100,000, guesses too", fact=True, digits=2),
        Column("millions", "million comparisons", fact=True),
    ]
    faces = record.extra.get("test", {})
    note = (
        f"{faces.get('people', 0):,} people with {faces.get('faces', 0):,} faces, searched as one library; "
        "thresholds are means, each person has their own. The bound is the greater of Clopper and Pearson's "
        "and a bootstrap of people."
    )
    return result_table("Sure and maybe, on people never seen", _rows(record, "bands"), columns, note)


def _absent(record: Record) -> Table:
    columns = [
        Column("faces", "faces", fact=True),
        Column("searches", "searches", fact=True),
        Column("empty", "without a sure match, %", fact=True),
        Column("false", "false sure matches", fact=True, digits=3),
        Column("guesses", "guesses", fact=True),
        Column("real", "expected of real strangers", fact=True, digits=3),
        Column("recall_sure", "own faces sure, if there, %", fact=True),
    ]
    note = (
        "Searches for people who are not in the library. Beside the faces of the others, it has those of "
        "virtual people, drawn from the statistics of real descriptors, who are less extreme: expected of as "
        "many real strangers are the false sure matches of the real ones at the same thresholds."
    )
    return result_table("Absent people", _rows(record, "absent"), columns, note)


def _alike(record: Record) -> Table:
    columns = [
        Column("libraries", "libraries", fact=True),
        Column("recall_sure", "sure, %", fact=True),
        Column("false_sure", "false sure per million", fact=True, digits=2),
        Column("false_maybe", "false per 100,000, guesses too", fact=True, digits=2),
    ]
    note = (
        "The people tested, divided into libraries of those who look alike, one example each. A stranger "
        "there is more similar than elsewhere; thresholds that are measured in a library follow."
    )
    rows = _rows(record, "alike")
    return result_table("Libraries of people who look alike: strangers' similarity", rows, columns, note)


def _reliability(record: Record) -> Table:
    columns = [
        Column("matches", "matches", fact=True),
        Column("given", "probability given, %", fact=True, digits=2),
        Column("right", "right, %", fact=True, digits=2),
    ]
    note = "All matches of the people tested, sure and maybe, by the probability that was given to them."
    return result_table("What probabilities are worth", _rows(record, "reliability"), columns, note)
