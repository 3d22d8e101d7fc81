"""Pictures of results, as PNG and SVG, that can be read when printed in grey."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setnet.durable import storage_errors
from setnet.errors import ModelError
from setnet.evaluate.record import Record, Row
from setnet.evaluate.stress_trial import FACES, ndcg_name

# Distinguished by colour (after Okabe and Ito 2008), marker and dashes alike.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
MARKERS = "osD^v<>PX*hd"
DASHES = ("-", "--", "-.", ":")
RERANKED = re.compile(r", re-rank (\d[\d,]*\d|\d)")  # in the names of rows that differ in nothing else
# The main methods of `setnet train claim`.
CLAIMED = (
    "Descriptor-per-element",
    "Element codes, 1 bit",
    "Baseline + W",
    "Baseline-2 + W",
    "Baseline-GM-2 + W",
    "SetNet + W",
    "SetNet-2 + W",
    "SetNet-3 + W",
)


def plots_of(record: Record, folder: Path) -> list[Path]:
    """Draw the record's pictures into ``folder``; return the PNG files (SVG ones lie beside them)."""
    draw = _PLOTS.get(record.experiment)
    if draw is None or not record.rows:
        return []
    try:
        import matplotlib
    except ImportError as error:
        raise ModelError("plots need matplotlib: install it with `pip install 'setnet[evaluate]'`") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    written = []
    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.hashsalt": "setnet",
    }
    with matplotlib.rc_context(style):
        for name, figure in draw(record, plt):
            with storage_errors(folder, "cannot write plots to "):
                folder.mkdir(parents=True, exist_ok=True)
                figure.savefig(folder / f"{name}.png", dpi=160)
                figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)
            written.append(folder / f"{name}.png")
    return written


def pareto(cost: Sequence[float], gain: Sequence[float]) -> list[int]:
    """Return the points that nothing beats in both cost and gain, cheapest first.

    >>> pareto([3.0, 1.0, 2.0], [9.0, 5.0, 4.0])
    [1, 0]
    """
    front: list[int] = []
    for i in sorted(range(len(cost)), key=lambda i: (cost[i], -gain[i])):
        if not front or gain[i] > gain[front[-1]]:
            front.append(i)
    return front


def _stress(record: Record, plt: Any) -> list[tuple[str, Any]]:
    return [(f"stress-{depth}", _by_faces(record.rows, depth, plt)) for depth in (10, 30)]


def _claim(record: Record, plt: Any) -> list[tuple[str, Any]]:
    from setnet.evaluate.claim import over_seeds  # imports torch

    rows = [row for row in over_seeds(record) if row.facts["row"] in CLAIMED]
    return [("claim", _by_faces(rows, 10, plt, record.settings["elements"]))]


def _by_faces(rows: Sequence[Row], depth: int, plt: Any, elements: str = "faces") -> Any:
    figure, axes = plt.subplots(figsize=(8.2, 4.4), layout="constrained")
    for number, row in enumerate(row for row in rows if row.values):
        pairs = [row.estimate(ndcg_name(depth, count)) for count in FACES]
        means, errors = zip(*pairs, strict=True)
        look = _look(number, row)
        axes.errorbar(FACES, means, yerr=np.nan_to_num(errors), label=_label(row), capsize=2, **look)
    _label_axes(axes, xlabel=f"{elements} per set", ylabel=f"nDCG@{depth} (%)", xticks=FACES)
    return figure


def _tradeoff(record: Record, plt: Any) -> list[tuple[str, Any]]:
    figures = []
    for fact, words in (
        ("mean_ms", "mean time per query, one thread (ms)"),
        ("bytes_per_item", "bytes per item"),
    ):
        rows = [row for row in record.rows if row.facts.get(fact) and "queries)" not in row.name]
        if not rows:
            continue
        cost = [float(row.facts[fact]) for row in rows]
        gain = [row.estimate("ndcg10")[0] for row in rows]
        figure, axes = plt.subplots(figsize=(8.2, 4.8), layout="constrained")
        front = pareto(cost, gain)
        axes.step(
            [cost[i] for i in front], [gain[i] for i in front], where="post", color="#7F7F7F", lw=1,
            ls="--", zorder=1, label="Pareto front",
        )  # fmt: skip
        families: dict[str, list[int]] = {}
        for i in sorted(range(len(rows)), key=cost.__getitem__):
            families.setdefault(RERANKED.sub("", rows[i].name), []).append(i)
        for number, (family, steps) in enumerate(families.items()):
            look = _look(number, rows[steps[0]]) | {"ms": 6}
            axes.plot([cost[i] for i in steps], [gain[i] for i in steps], label=family, **look)
            for i in steps:
                if step := RERANKED.search(rows[i].name):
                    place = {"xytext": (4, -9), "textcoords": "offset points"}
                    axes.annotate(step[1], (cost[i], gain[i]), fontsize=6.5, **place)
        _label_axes(axes, xscale="log", xlabel=words, ylabel="nDCG@10 (%)")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "235" else "")
        axes.grid(alpha=0.25, which="both")
        figures.append((f"tradeoff-{'time' if fact == 'mean_ms' else 'bytes'}", figure))
    return figures


def _identify(record: Record, plt: Any) -> list[tuple[str, Any]]:
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    for number, row in enumerate(record.rows):
        curve = row.facts["curve"]
        look = _look(number, row) | {"marker": "", "ls": DASHES[number % len(DASHES)]}
        axes.plot(curve["far"], curve["tar"], label=row.name, **look)
    false, true = "false accept rate (share of non-matching pairs)", "true accept rate (% of genuine pairs)"
    _label_axes(axes, xscale="log", xlabel=false, ylabel=true)
    return [("identify-roc", figure)]


def _look(number: int, row: Row) -> dict[str, Any]:
    look = {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "ls": DASHES[number // len(COLOURS) % len(DASHES)],
        "ms": 4.5,
        "lw": 1.3,
    }
    return look | {"color": "#000000", "lw": 1.8} if row.bound else look


def _label(row: Row) -> str:
    size = row.facts.get("bytes")
    return f"{row.name} ({size} B)" if isinstance(size, int) else row.name


def _label_axes(axes: Any, **labels: Any) -> None:
    axes.set(**labels)
    axes.grid(alpha=0.25)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=7.5)


_PLOTS: dict[str, Callable[[Record, Any], list[tuple[str, Any]]]] = {
    "claim": _claim,
    "identify": _identify,
    "stress": _stress,
    "tradeoff": _tradeoff,
}
