"""Results of experiments and benchmarks: JSON in docs/results, tables and charts when the docs are built.

Experiments and benchmarks write Markdown, each part between two marks that name it. This takes the parts of a
page over into docs/results, one file each:

    python docs/hooks/results.py PAGE.md

A page of the docs shows a result by a link on a line of its own: ``[table: TITLE](results/NAME.json)``
becomes the table of that title, and ``[chart: TITLE](results/NAME.json)`` a chart of `CHARTS`.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "results"

_BLOCK = re.compile(r"<!-- begin generated: (.+?) -->\n(.*?)\n<!-- end generated: ", re.DOTALL)
_LINK = re.compile(r"^\[(table|chart): ([^\]]+)\]\((?:\.\./)*results/([\w-]+)\.json\)$", re.MULTILINE)


def take_over(page: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the result of each generated part of a page."""
    for name, text in _BLOCK.findall(page):
        yield re.sub(r"\W+", "-", name.removeprefix("evaluate ")).strip("-"), parse(text, name)


def parse(text: str, name: str) -> dict[str, Any]:
    """Return one generated part as JSON: its title, tables, remarks and the command that made it."""
    result: dict[str, Any] = {"title": name.capitalize(), "made_by": "", "remarks": [], "tables": []}
    title = ""
    for part in re.split(r"\n{2,}|\n(?=\|)(?<!\|\n)", text):
        part = part.strip()
        if part.startswith("|"):
            head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines())
            result["tables"].append({"title": title or result["title"], "columns": head, "rows": rows})
            title = ""
        elif found := re.fullmatch(r"#+ (.*)", part):
            if not result["tables"] and not result["remarks"]:
                result["title"] = found[1]
            title = found[1]
        elif found := re.fullmatch(r"\*\*(.*)\*\*", part):
            title = found[1]
        elif re.match(r"(Made|Written|Measured|Generated) by\b", part):
            result["made_by"] = " ".join(part.split())
        elif part and not part.startswith("!["):
            result["remarks"].append(" ".join(part.split()))
    return result


def load(name: str) -> dict[str, Any]:
    """Return a stored result."""
    result: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return result


def with_results(markdown: str) -> str:
    """Return a page with its tables and charts in place of the links to them."""
    return _LINK.sub(
        lambda link: _table(link[3], link[2]) if link[1] == "table" else chart(link[2]), markdown
    )


def page_of(name: str) -> str:
    """Return everything of one result, as a section of a generated page."""
    result = load(name)
    parts = [f"## {result['title']}", *result["remarks"]]
    for table in result["tables"]:
        parts += [f"**{table['title']}**" if table["title"] != result["title"] else "", _rows(table)]
    return "\n\n".join(part for part in [*parts, result["made_by"]] if part)


def _table(name: str, title: str) -> str:
    result = load(name)
    origin = f"*{result['made_by']}*" if result["made_by"] else ""
    return f"{_rows(_find(result, title))}\n\n{origin}"


def _find(result: dict[str, Any], title: str) -> dict[str, Any]:
    for table in result["tables"]:
        if table["title"] == title:
            return dict(table)
    titles = [table["title"] for table in result["tables"]]
    raise KeyError(f"no table {title!r} in {result['title']!r}: there are {titles}")


def _rows(table: dict[str, Any]) -> str:
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Bars:
    """One bar per row of a table, on a logarithmic scale if asked for."""

    file: str
    table: str
    label: int
    value: int
    unit: str
    only: tuple[tuple[int, str], ...]  # column and text of the rows that are shown
    ours: str


@dataclass(frozen=True)
class Lines:
    """One line per method, over columns of a table."""

    file: str
    table: str
    methods: tuple[str, ...]
    unit: str


CHARTS: dict[str, Bars | Lines] = {
    "one photo": Bars("photos-time", "Photos, time", 1, 6, "s", ((0, "12 MP JPEG"),), "setnet"),
    "stress test": Lines(
        "stress-lfw",
        "Stress test, nDCG@10",
        ("mean", "sface-128", "sface-512", "element codes, 1 bit", "descriptor per element"),
        "nDCG@10",
    ),
}  # fmt: skip


def chart(name: str) -> str:
    """Return a chart as SVG."""
    spec = CHARTS[name]
    table = _find(load(spec.file), spec.table)
    return _bars(name, spec, table["rows"]) if isinstance(spec, Bars) else _lines(name, spec, table)


def _number(text: str) -> float:
    found = re.search(r"-?[\d,]*\.?\d+", text)
    assert found, f"no number in {text!r}"
    return float(found[0].replace(",", ""))


def _bars(name: str, spec: Bars, rows: Sequence[Sequence[str]]) -> str:
    chosen = [row for row in rows if all(row[column] == text for column, text in spec.only)]
    values = sorted((_number(row[spec.value]), row[spec.label]) for row in chosen if row[spec.value])
    top = values[-1][0]
    parts = []
    for place, (value, label) in enumerate(values):
        y, width = 24 * place + 6, max(2, 330 * value / top)
        colour = "#2e7d46" if label.startswith(spec.ours) else "#7fa7d9"
        parts += [
            _text(290, y + 13, label, "end"),
            f'<rect x="300" y="{y}" width="{width:.0f}" height="16" fill="{colour}"/>',
            _text(306 + width, y + 13, f"{value:g} {spec.unit}"),
        ]
    return _svg(name, 740, 24 * len(values) + 12, parts)


def _lines(name: str, spec: Lines, table: dict[str, Any]) -> str:
    series = _series(spec, table)
    points = [point for line in series.values() for point in line]
    (left, right), (low, high) = (
        (min(point[axis] for point in points), max(point[axis] for point in points)) for axis in (0, 1)
    )
    parts = []
    for number, (method, line) in enumerate(series.items()):
        colour = ("#2e7d46", "#7fa7d9", "#c2662d", "#6b5b95", "#555555")[number]
        placed = [
            (
                60 + 380 * (x - left) / (right - left),
                250 - 220 * (y - low) / (high - low),
                x,
                y,
            )
            for x, y in line
        ]
        path = " ".join(f"{x:.0f},{y:.0f}" for x, y, _, _ in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y, at, value in placed:
            tip = f"{method}: {value:g} {spec.unit} at {at:,.0f}"
            parts.append(
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="{colour}"><title>{tip}</title></circle>'
            )
        parts.append(f'<rect x="470" y="{24 * number + 30}" width="14" height="14" fill="{colour}"/>')
        last = placed[-1][3]
        parts.append(_text(492, 24 * number + 42, f"{method} ({last:g} {spec.unit} at the right)"))
    for x in sorted({x for x, _ in points}):
        parts.append(_text(60 + 380 * (x - left) / (right - left), 275, f"{x:,.0f}", "middle"))
    return _svg(name, 800, 285, parts)


def _series(spec: Lines, table: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    columns = [
        (place, _number(head)) for place, head in enumerate(table["columns"]) if head.endswith("faces")
    ]
    rows = {row[0]: row for row in table["rows"]}
    return {method: [(x, _number(rows[method][c])) for c, x in columns] for method in spec.methods}


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _svg(name: str, width: int, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{html.escape(name)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" font-family="sans-serif" font-size="13">{"".join(parts)}</svg>'
    )


def main() -> None:
    """Take over the results of the page that is named on the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/hooks/results.py PAGE.md")
    for name, result in take_over(Path(sys.argv[1]).read_text(encoding="utf-8")):
        file = FOLDER / f"{name}.json"
        file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
