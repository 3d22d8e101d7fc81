"""The tables of an adaptation: the original and the adapted descriptor side by side, and what was gained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from setnet.evaluate.methods.stress_measure import FACES
from setnet.evaluate.report.claim_rows import measure
from setnet.evaluate.report.record import Record, Row
from setnet.evaluate.report.tables import Column, Table, result_table

NOTE = (
    "Mean ± standard error over the queried people. (w, b) of every method and descriptor was calibrated, in "
    "the same way, on photos of the training half as they are."
)


def adaptation_tables(record: Record) -> list[Table]:
    """Return a table per kind of photos, one of verification and one of the gains."""
    sets = [row for row in record.rows if _is_of_sets(row)]
    single = [row for row in record.rows if not _is_of_sets(row)]
    columns = [Column("bytes", "bytes", fact=True)]
    columns += [Column(measure(10, count), f"{count} faces") for count in FACES]
    tables = [
        result_table(f"Photos {kind}, nDCG@10", _named(sets, kind), columns, NOTE)
        for kind in record.settings["kinds"]
    ]
    rates = [key for row in single[:1] for key in row.values]
    matches = [Column(key, f"at FMR {key.removeprefix('tar@')}", digits=2) for key in rates]
    shown = [replace(row, name=f"{row.facts['descriptor']}, photos {row.facts['photos']}") for row in single]
    tables.append(result_table("Verification: genuine pairs accepted, percent", shown, matches))
    return [*tables, *(_gains(*part) for part in ((sets, "nDCG@10"), (single, "verification")) if part[0])]


def verdict(record: Record) -> str:
    """Return in words where the adapted descriptor is better, and where it is worse, by two errors."""
    lines = []
    for kind in record.settings["kinds"]:
        leads = [
            lead
            for ours, theirs in _pairs(record.rows)
            if ours.facts["photos"] == kind
            for lead in (ours.lead(theirs, key) for key in ours.values)
        ]
        better = sum(points > 2 * error for points, error in leads)
        worse = sum(points < -2 * error for points, error in leads)
        trained = "trained on" if kind in record.extra["trained"] else "not trained on"
        lines.append(
            f"Photos {kind} ({trained}): adapted is better in {better} and worse in {worse} of "
            f"{len(leads)} measures by more than two standard errors."
        )
    return "\n".join(lines)


def _is_of_sets(row: Row) -> bool:
    return measure(10, FACES[0]) in row.values


def _named(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows of one kind of photos, those of one method beside each other."""
    own = [row for row in rows if row.facts["photos"] == kind]
    methods = [row.facts["method"] for row in own]
    own = sorted(own, key=lambda row: methods.index(row.facts["method"]))
    return [replace(row, name=f"{row.facts['method']}, {row.facts['descriptor']}") for row in own]


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the adapted and the original row of each method and kind of photos."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row.facts["method"], row.facts["photos"]), {})[row.facts["descriptor"]] = row
    return [(both["adapted"], both["original"]) for both in found.values() if len(both) == 2]


def _gains(rows: Sequence[Row], title: str) -> Table:
    keys = [*rows[0].values]
    cells = tuple(
        (
            f"{ours.facts['method']}, photos {ours.facts['photos']}",
            *("{:+.2f} ± {:.2f}".format(*ours.lead(theirs, key)) for key in keys),
        )
        for ours, theirs in _pairs(rows)
    )
    heads = [key.replace("ndcg10@", "faces: ").replace("tar@", "FMR ") for key in keys]
    return Table(f"Gain by adaptation, {title}", ("method", *heads), cells)
