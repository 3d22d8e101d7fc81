"""One page of all results in a folder: tables, the paper's beside them, and plots, in a single file."""

from __future__ import annotations

import base64
import html
import re
import tempfile
from pathlib import Path

from setnet.durable import storage_errors
from setnet.errors import InvalidInputError
from setnet.evaluate.report.experiment_tables import conditions, tables_of
from setnet.evaluate.report.paper_comparison import DIFFERENCES, compared
from setnet.evaluate.report.plots import plots_of
from setnet.evaluate.report.record import Record, read_record

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
