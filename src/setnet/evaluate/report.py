"""Writes what experiments recorded into a page: tables, plots, and the paper's figures beside ours."""

from __future__ import annotations

import base64
import html
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from setnet.durable import storage_errors
from setnet.errors import InvalidInputError, choice_error
from setnet.evaluate.claim_data import REPEATS
from setnet.evaluate.plots import plots_of
from setnet.evaluate.record import Record, Row, mean_and_error, read_record
from setnet.evaluate.stress_trial import FACES
from setnet.evaluate.tables import (
    Table,
    adaptation_tables,
    conditions,
    is_reproduced,
    leads,
    over_seeds,
    tables_of,
    verdict,
)
from setnet.train.stages import WITHOUT

TITLES = {  # in the order of the page
    "fit": "Virtual people against real ones",
    "stress": "Stress test (section 5.1)",
    "retrieval": "Retrieval by set vectors (section 5.2)",
    "tradeoff": "Quality against time and bytes (section 5.3)",
    "orthogonality": "Orthogonality (section 5.4)",
    "identify": "Identification of single faces",
    "photos": "End-to-end search, detector included",
    "matching": "Matches in figures",
    "collect": "How good collected labels are",
    "grouping": "Unknown faces grouped by person",
    "video": "Videos, on composed footage",
}
INTRODUCTION = """# Result tables

Each part between `begin generated` and `end generated` was written by a command, which it names with its
settings, machine, versions and seed; [evaluate.md](evaluate.md) says how to run them and how to read the
tables. Simulated and LFW numbers are not the paper's: where both stand in one table, its first column says
which is which.
"""
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem}
body{color:#111;background:#fff}
h2{margin-top:3rem;border-bottom:1px solid #ccc}
figure{margin:1.2rem 0}figcaption{font-weight:600;margin-bottom:.3rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #e5e5e5;white-space:nowrap}
th:first-child,td:first-child{text-align:left}td.best{font-weight:700}
.note,.made{color:#555;font-size:13px}img{max-width:100%}details{margin:1rem 0}
"""


def read_folder(folder: Path) -> list[tuple[str, Record]]:
    """Return the results in a folder with their file names, in the order of the paper."""
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is no folder: give the one with the --json files of experiments")
    found = [(path.stem, read_record(path)) for path in sorted(folder.glob("*.json"))]
    known = [pair for pair in found if pair[1].experiment in TITLES]
    if not known:
        others = f" of these experiments, only {', '.join(name for name, _ in found)}" if found else ""
        raise InvalidInputError(
            f"{folder} holds no results{others}: looked for *.json of {', '.join(TITLES)}; run one of these "
            f"with --json {folder}/NAME.json"
        )
    return sorted(known, key=lambda pair: ([*TITLES].index(pair[1].experiment), pair[0]))


def write_page(folder: Path, out: Path) -> Path:
    """Write one HTML page that needs nothing else."""
    sections = []
    for name, record in read_folder(folder):
        parts = [f"<h2>{html.escape(_title(name, record))}</h2>"]
        parts += [table.as_html() for table in tables_of(record)]
        with tempfile.TemporaryDirectory() as made:
            for picture in plots_of(record, Path(made)):
                data = base64.b64encode(picture.read_bytes()).decode("ascii")
                parts.append(f'<img alt="{picture.stem}" src="data:image/png;base64,{data}">')
        if record.experiment in DIFFERENCES:
            beside = "".join(table.as_html() for table in compared(record))
            parts.append(f"<details><summary>Beside the paper</summary>{beside}</details>")
        parts.append(f"<p class=made>{html.escape(conditions(record))}</p>")
        sections.append("\n".join(parts))
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>setnet: results</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>setnet: results</h1>{''.join(sections)}</html>"
    )
    _write(out, page)
    return out


def write_markdown(folder: Path, out: Path) -> Path:
    """Put each result into its own generated block of a Markdown page; other text of the page stays.

    Plots are drawn into the folder ``results`` beside the page.
    """
    text = out.read_text(encoding="utf-8") if out.is_file() else INTRODUCTION
    for name, record in read_folder(folder):
        parts = [f"## {_title(name, record)}\n"]
        parts += [table.markdown() for table in tables_of(record)]
        for picture in plots_of(record, out.parent / "results" / name):
            place = picture.relative_to(out.parent).as_posix()
            parts.append(f"![{picture.stem}]({place})\n")
        if record.experiment in DIFFERENCES:
            parts += [table.markdown() for table in compared(record)]
        parts.append(f"Made by `setnet evaluate {record.experiment}`: {conditions(record)}\n")
        text = with_block(text, f"evaluate {name}", "\n".join(parts))
    _write(out, text)
    return out


def with_block(text: str, name: str, content: str) -> str:
    """Return the page with the named generated block replaced, or added at the end."""
    start, end = f"<!-- begin generated: {name} -->", f"<!-- end generated: {name} -->"
    block = f"{start}\n{content}\n{end}"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    if pattern.search(text):
        return pattern.sub(lambda _: block, text)
    return text.rstrip("\n") + "\n\n" + block + "\n"


def _title(name: str, record: Record) -> str:
    title = TITLES[record.experiment]
    rest = name.removeprefix(record.experiment).strip("-_ ")
    return f"{title}: {rest}" if rest else title


def _write(path: Path, text: str) -> None:
    with storage_errors(path, "cannot write "):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


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
    path = Path(__file__).parent / "data" / "paper_tables.json"
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
        raise choice_error("table of the paper", key, paper_tables())
    table = _stored()[key]
    rows = {name: tuple(values) for name, values in table["rows"].items()}
    return PaperTable(table["table"], tuple(table["columns"]), rows)


def compared(record: Record) -> list[Table]:
    """Return tables with the paper's rows and ours; the source of each row is in the first column."""
    if record.experiment not in DIFFERENCES:
        raise choice_error("experiment with a table in the paper", record.experiment, sorted(DIFFERENCES))
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


CLAIMED = "SetNet-3 + W"  # the paper's choice


def section(record: Record, picture: str) -> str:
    """Return the section as Markdown; `picture` is the path of the figure from the page."""
    rows = over_seeds(record)
    return "\n".join(
        [
            f"## The paper's claim on {_subject(record)}",
            "",
            _verdict(rows),
            "",
            _done(record, rows),
            "",
            *(table.markdown() for table in tables_of(record)),
            f"Learned exponents p (started at 3): {_exponents(rows)}.",
            "",
            f"![nDCG@10 by elements per set]({picture})",
        ]
    )


def write_claim(record: Record, page: Path) -> Path:
    """Put the section into `page` (in place of an earlier one, or at the end) and the figure beside it."""
    subject = _subject(record)
    (picture,) = plots_of(record, page.parent / "results" / f"claim-{subject.replace(' ', '-')}")
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    block = section(record, str(picture.relative_to(page.parent)))
    page.write_text(with_block(text, f"claim {subject}", block).lstrip("\n"), encoding="utf-8")
    return page


def _subject(record: Record) -> str:
    """Return what a run was about: runs with several losses, or without parts, have sections of their own."""
    elements: str = record.settings["elements"]
    losses = {row.facts["loss"] for row in record.rows} - {""}
    parts = any(row.facts["row"] in {variant.name for variant in WITHOUT} for row in record.rows)
    return f"{elements} by parts" if parts or len(losses) > 1 else elements


def _verdict(rows: list[Row]) -> str:
    named = [row.name for row in rows if row.facts["row"] == CLAIMED]
    if not named:
        return "Not measured to the end yet."
    held = [name for name in named if is_reproduced(rows, name)]
    said = f"**reproduced** here by {', '.join(held)}" if held else "**not reproduced** in full here"
    return (
        f"The claim is {said}. It asks that {CLAIMED} lead the best pooled baseline, trained with the same "
        "budget, at every number of elements by more than twice the standard error of its lead. "
        + " ".join(_where_it_leads(rows, name) for name in named)
    )


def _where_it_leads(rows: list[Row], name: str) -> str:
    found = leads(rows, name)
    behind = [lead for lead in found if lead.points <= 2 * lead.error]
    if not behind:
        return f"{name} leads at all of them."
    ahead = ", ".join(str(lead.elements) for lead in found if lead not in behind) or "none of them"
    others = "; ".join(
        f"{lead.points:+.1f} ± {lead.error:.1f} against {lead.baseline} at {lead.elements}" for lead in behind
    )
    return f"{name} leads at {ahead}, but has {others}."


def _done(record: Record, rows: list[Row]) -> str:
    settings, extra = record.settings, record.extra
    backbone, sets, pretrain = settings["backbone"], settings["sets"], settings["pretrain"]
    seeds = max((len(values) for row in rows for values in row.values.values()), default=0)
    tried = ", ".join(f"{alpha}: {quality}" for alpha, quality in extra["alphas"].items())
    return (
        f"Preset `{settings['preset']}`: `{backbone['name']}` of width {backbone['width']} on "
        f"{backbone['size']}-pixel pictures, {pretrain['steps']:,} steps of softmax, then {sets['steps']:,} "
        f"steps of set training per method ({2 * sets['identities']} pictures each, end-to-end), {seeds} "
        f"training seed{'s' * (seeds != 1)}. Identities trained on, calibrated on and tested: "
        f"{', '.join(f'{n:,}' for n in extra['identities'])}. Test: {settings['worlds']} worlds of "
        f"{extra['size'][1]:,} sets and {extra['size'][0]:,} labelled identities, 100 queries of two, "
        f"{REPEATS} pictures of each. (w, b) of each method was calibrated, in the same way, on identities "
        f"that no network was trained on. NetVLAD starts with alpha {extra['alpha']:g}, chosen untrained on "
        f"these ({tried}).{_rates(record)} {record.machine['seconds'] / 60:.0f} minutes in all "
        f"({record.machine['cpu_seconds'] / 60:.0f} of processor time), {record.machine['processor']}, "
        f"{record.machine['date']}."
    )


def _rates(record: Record) -> str:
    """Return which rates of set training were tried on validation identities, and chosen."""
    said = []
    for loss, families in record.extra.get("rates", {}).items():
        for family, one in families.items():
            tried = ", ".join(f"{rate}: {quality}" for rate, quality in one["tried"].items())
            said.append(f"{loss}, {family}: {one['rate']:g} ({tried})")
    if not said:
        return ""
    return (
        " Each family chose its rate of set training on the same identities from the same three, each tried "
        f"with the whole budget in the first seed ({'; '.join(said)})."
    )


def _exponents(rows: list[Row]) -> str:
    learned = {
        row.name: row.facts["exponents"] for row in rows if "exponents" in row.facts and "+ W" not in row.name
    }
    return (
        "; ".join(
            f"{name}: {low:.2f}" + (f" to {high:.2f}" if low != high else "")
            for name, (low, high) in learned.items()
        )
        or "none"
    )


def write_adaptation(record: Record, page: Path) -> Path:
    """Put the section into `page`, in place of an earlier one or at the end."""
    parts = [
        "## SFace adapted to degraded photos\n",
        f"{verdict(record)}\n",
        f"{_adaptations_done(record)}\n",
        *(table.markdown() for table in adaptation_tables(record)),
    ]
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    page.write_text(with_block(text, "train adapt", "\n".join(parts)).lstrip("\n"), encoding="utf-8")
    return page


def _adaptations_done(record: Record) -> str:
    settings, extra = record.settings, record.extra
    tried = ", ".join(f"{name}: {quality}" for name, quality in extra["tried"].items())
    return (
        f"Trained: SFace's last {settings['blocks']} of 13 blocks and its last layer, "
        f"{settings['sets']['steps']:,} steps on up to {settings['photos']} photos of each of LFW's training "
        f"people and copies of them ({', '.join(extra['trained'])}). Share of distillation in the loss "
        f"{extra['distil']:g}, chosen on a quarter of these people (nDCG@10 of mean pooling there: {tried}). "
        f"Tested: the test half, {settings['test_sets']:,} sets, 100 queries of two. "
        f"{record.machine['processor']}, {record.machine['date']}."
    )
