"""The table of the experiment on videos."""

from __future__ import annotations

from setnet.evaluate.report.record import Record, Row
from setnet.evaluate.report.tables import Table

_MEASURES = {"precision": "precision", "recall": "recall", "f1": "F1", "ndcg10": "nDCG@10"}


def video_tables(record: Record) -> list[Table]:
    """Return shots, people and queries in one table; what does not apply to a row is left empty."""
    note = (
        "In percent. A limit counts when it is at most 0.5 s from the true one; a person when one element of "
        "the shot is theirs, and each further one is wrong. Queries: one picture per person, in no clip."
    )
    cells = tuple((row.name, *(_cell(row, key) for key in _MEASURES)) for row in record.rows)
    return [Table("Composed footage", ("what", *_MEASURES.values()), cells, note=note)]


def _cell(row: Row, key: str) -> str:
    if key not in row.values:
        return ""
    mean, error = row.estimate(key)
    return f"{mean:.1f}" if len(row.values[key]) < 2 else f"{mean:.1f} ± {error:.1f}"
