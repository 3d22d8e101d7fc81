"""Our results beside the paper's own tables, with what differs in the set-up said in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from setnet.errors import one_of
from setnet.evaluate.methods.stress_measure import FACES
from setnet.evaluate.report.record import Record, Row, mean_and_error
from setnet.evaluate.report.tables import Table

DIFFERENCES: dict[str, str] = {
    "stress": (
        "The paper: faces of 2,622 celebrities of Celebrity Together, a ResNet-50 trained by softmax, every "
        "network trained on sets. Here: the people named below, a descriptor trained with margins, whose "
        "faces are far better separated, so numbers are higher and the gap between methods is not the same. "
        "Baselines here have no set training."
    ),
    "retrieval": (
        "The paper: 549k real photos. Here: the world named below; in the simulated one the counts are the "
        "paper's, the faces are drawn from statistics of SFace on LFW, made harder by the difficulty given."
    ),
    "tradeoff": (
        "The paper: 549k real photos, Matlab, one thread of a Xeon E5-2667 v2. Here: the world named below, "
        "this engine, one thread of the machine named. Times compare machines and code, not methods; nDCG of "
        "a simulated world compares methods within one table only."
    ),
    "orthogonality": (
        "The paper: 2,622 people of VGG Face, 100 faces each. Here: the people at hand, up to 100 faces "
        "each, many with two or three, whose means are noisier; compare the ratios, which do not depend on n."
    ),
    "identify": "The paper: IJB-A's protocol. Here: the people at hand, half of each one's faces as gallery.",
}
_TABLES = {"stress": ("stress10", "stress30")}


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: its name there, its columns and rows."""

    table: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[float | None, ...]]


@cache
def _stored() -> dict[str, Any]:
    path = Path(__file__).parent / "paper_tables.json"
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return stored


def paper_tables() -> list[str]:
    """Return the keys of the paper's tables."""
    return list(_stored())


def paper_table(key: str) -> PaperTable:
    """Return a table of the paper.

    >>> paper_table("orthogonality").rows["SetNet-3"][0]
    274
    """
    if key not in _stored():
        raise one_of("table of the paper", key, paper_tables())
    table = _stored()[key]
    rows = {name: tuple(values) for name, values in table["rows"].items()}
    return PaperTable(table["table"], tuple(table["columns"]), rows)


def compared(record: Record) -> list[Table]:
    """Return tables with the paper's rows and ours; the source of each row is in the first column."""
    if record.experiment not in DIFFERENCES:
        raise one_of("experiment with a table in the paper", record.experiment, sorted(DIFFERENCES))
    tables = []
    for key in _TABLES.get(record.experiment, (record.experiment,)):
        paper = paper_table(key)
        cells = [("paper", name, *map(_shown, values)) for name, values in paper.rows.items()]
        cells += [("here", row.name, *_ours(key, record, row)) for row in record.rows if _has(key, row)]
        world = str(record.extra.get("world", ""))
        note = f"{DIFFERENCES[record.experiment]} Here: {world}."
        columns = ("from", "method", *paper.columns)
        tables.append(Table(f"Beside the paper's {paper.table}", columns, tuple(cells), note=note))
    return tables


def _shown(value: float | None) -> str:
    return "" if value is None else str(value)


def _has(key: str, row: Row) -> bool:
    # rows with query aggregation stand beside their method in the paper's trade-off table
    return bool(row.values) and not (key == "tradeoff" and row.name.endswith(", query agg."))


def _ours(key: str, record: Record, row: Row) -> Sequence[str]:
    if key.startswith("stress"):
        return [_mean(row, f"ndcg{key.removeprefix('stress')}@{count}") for count in FACES]
    if key == "retrieval":
        return [_mean(row, f"ndcg{depth} n{each}") for each in (1, 3) for depth in (10, 30)]
    if key == "orthogonality":
        ratios = [_mean(row, name, 2) for name in ("plain_ratio", "whitened_ratio")]
        return [_mean(row, "plain"), _mean(row, "whitened"), *ratios]
    if key == "identify":
        return [_mean(row, f"tpir{rank}") for rank in (1, 5, 10)]
    beside = [other for other in record.rows if other.name == f"{row.name}, query agg."]
    return [*_trade(row), *(_trade(beside[0]) if beside else [""] * 4)]


def _trade(row: Row) -> list[str]:
    speedup, milliseconds = row.facts.get("speedup"), row.facts.get("mean_ms")
    return [
        _mean(row, "ndcg10"),
        _mean(row, "ndcg30"),
        "" if milliseconds is None else f"{milliseconds / 1000:.4f}",
        "" if speedup is None else f"{speedup:.1f}",
    ]


def _mean(row: Row, key: str, digits: int = 1) -> str:
    values = row.values.get(key)
    return f"{mean_and_error(values)[0]:.{digits}f}" if values else ""
