"""The opening of docs/performance.md: three sentences and a plot, from the figures in its own tables.

    python benchmarks/performance_plot.py docs/performance.md

`opening(rows, picture)` does the same for `benchmarks/engine.py`, which writes the page.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BEGIN, END = "<!-- begin generated: opening -->", "<!-- end generated: opening -->"
OURS = "setnet exact"
READ = "reading the bytes once"


@dataclass(frozen=True)
class Time:
    """One row of the page: who did which work in how many milliseconds (minimum and median of the turns)."""

    work: str
    who: str
    threads: int
    ms: float
    median: float
    quality: str


def opening(rows: Sequence[Time], picture: Path) -> str:
    """Draw the plot into `picture`; return the three sentences and the link to it."""
    alone = [row for row in rows if row.threads == 1]
    works = list(dict.fromkeys(row.work for row in alone if row.who == OURS))
    if not works:
        raise SystemExit(f"no rows of {OURS!r} with one thread: run the part 'exact' of benchmarks/engine.py")
    draw([row for row in alone if row.work == works[0]], works[0], picture)
    times = {(row.work, row.who): row.ms for row in alone}
    ours = [times[work, OURS] for work in works]
    medians = [row.median for row in alone if row.who == OURS]
    read = [times[work, OURS] / times[work, READ] for work in works]
    others = {row.who: row.ms for row in alone if row.work == works[0] and row.who not in (OURS, READ)}
    fastest, slowest = min(others, key=others.__getitem__), max(others, key=others.__getitem__)
    verb = "is faster" if others[fastest] < ours[0] else "comes next"
    return "\n".join(
        [
            f"An exact search for two or three people among 549,000 photos takes {span(ours)} ms on one core at best, "
            f"{span(read)} times as long as reading one byte per dimension of every face once; the medians are "
            f"{span(medians)} ms.",
            f"The straightforward way ({slowest}) takes {others[slowest]:.0f} ms for two people; {fastest}, which is not "
            f"exact, {verb} with {others[fastest]:.1f} ms.",
            "The tables below have all contenders, set vectors, re-ranking, batches, opening an index and growth to "
            "ten million photos; easier and harder worlds, and people who are not there.",
            "",
            f"![Milliseconds per query of each contender, one thread]({picture.parent.name}/{picture.name})",
        ]
    )


def span(values: Sequence[float]) -> str:
    """Return the smallest and largest value as text.

    >>> span([6.3, 6.7])
    '6.3 to 6.7'
    """
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def draw(rows: Sequence[Time], title: str, picture: Path) -> None:
    """Draw one dot per contender, fastest at the top, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "setnet"  # the same figures give the same file
    from matplotlib import pyplot as plt

    ordered = sorted(rows, key=lambda row: -row.ms)
    colours = [
        "#b0b0b0" if row.who == READ else "#2e7d46" if row.who == OURS else "#7fa7d9" for row in ordered
    ]
    figure, axes = plt.subplots(figsize=(8, 0.5 * len(ordered) + 1.2), layout="constrained")
    for height, (row, colour) in enumerate(zip(ordered, colours, strict=True)):
        axes.plot(row.ms, height, "o", color=colour, markersize=11)
        axes.annotate(f"{row.ms:.1f}", (row.ms, height), (10, -4), textcoords="offset points")
    axes.set_yticks(range(len(ordered)), [row.who for row in ordered])
    axes.set_ylim(-0.6, len(ordered) - 0.4)
    axes.grid(axis="both", color="#e5e5e5")
    axes.set_axisbelow(True)
    axes.set_xscale("log")
    axes.set_xlim(1, 2.2 * ordered[0].ms)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_xlabel("milliseconds per query, one thread (logarithmic)")
    axes.set_title(f"Exact and approximate search by face: {title}", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, metadata={"Date": None})
    plt.close(figure)


def read_page(text: str) -> list[Time]:
    """Return the rows of the table of exact search, of the first kernels on the page."""
    text = text.split("<!-- begin generated: exact ", 1)[-1].split("<!-- end generated: exact ", 1)[0]
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return [
        Time(c[0], c[1], int(c[2]), float(c[3]), float(c[4]), c[6])
        for c in cells
        if len(c) == 7 and c[2].isdigit()
    ]


def with_opening(text: str, block: str) -> str:
    """Return the page with the block below its title, in place of an earlier one."""
    if BEGIN in text:
        text = text[: text.index(BEGIN)] + text[text.index(END) + len(END) :].lstrip("\n")
    title, rest = text.split("\n", 1)
    return f"{title}\n\n{BEGIN}\n{block}\n{END}\n\n{rest.lstrip()}"


def main() -> None:
    """Rewrite the opening of the page named on the command line."""
    page = Path(sys.argv[1])
    text = page.read_text(encoding="utf-8")
    picture = page.parent / "images" / "performance.svg"
    page.write_text(with_opening(text, opening(read_page(text), picture)), encoding="utf-8")


if __name__ == "__main__":
    main()
