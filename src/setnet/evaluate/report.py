"""Results in a Markdown page, one block each, with the paper's figures beside ours."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from setnet.durable import storage_errors
from setnet.errors import choice_error
from setnet.evaluate.record import Record, Row, mean_and_error
from setnet.evaluate.stress_trial import FACES, ndcg_name
from setnet.evaluate.tables import Table, conditions


def write_section(
    page: Path, name: str, title: str, record: Record, tables: Sequence[Table], made_by: str
) -> Path:
    """Put one result into its generated block of a page, in place of an earlier one or at the end."""
    made = f"Made by `{made_by}`: {conditions(record)}\n"
    parts = [f"## {title}\n", *(table.markdown() for table in tables), made]
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    with storage_errors(page, "cannot write "):
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(replace_block(text, name, "\n".join(parts)).lstrip("\n"), encoding="utf-8")
    return page


def replace_block(text: str, name: str, content: str) -> str:
    """Return the page with the named generated block replaced, or added at the end."""
    start, end = f"<!-- begin generated: {name} -->", f"<!-- end generated: {name} -->"
    block = f"{start}\n{content}\n{end}"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    if pattern.search(text):
        return pattern.sub(lambda _: block, text)
    return text.rstrip("\n") + "\n\n" + block + "\n"


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


def compare_with_paper(record: Record) -> list[Table]:
    """Return tables with the paper's rows and ours; the source of each row is in the first column."""
    if record.experiment not in DIFFERENCES:
        raise choice_error("experiment with a table in the paper", record.experiment, sorted(DIFFERENCES))
    papers = json.loads((Path(__file__).parent / "data" / "paper_tables.json").read_text(encoding="utf-8"))
    tables = []
    for key in _TABLES.get(record.experiment, (record.experiment,)):
        paper = papers[key]
        cells = [
            ("paper", name, *("" if value is None else str(value) for value in values))
            for name, values in paper["rows"].items()
        ]
        cells += [("here", row.name, *_ours(key, record, row)) for row in record.rows if _has(key, row)]
        world = str(record.extra.get("world", ""))
        note = f"{DIFFERENCES[record.experiment]} Here: {world}."
        columns = ("from", "method", *paper["columns"])
        tables.append(Table(f"Beside the paper's {paper['table']}", columns, tuple(cells), note=note))
    return tables


def _has(key: str, row: Row) -> bool:
    # rows with query aggregation stand beside their method in the paper's trade-off table
    return bool(row.values) and not (key == "tradeoff" and row.name.endswith(", query agg."))


def _ours(key: str, record: Record, row: Row) -> Sequence[str]:
    if key.startswith("stress"):
        return [_mean(row, ndcg_name(int(key.removeprefix("stress")), count)) for count in FACES]
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
