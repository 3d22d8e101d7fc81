"""The paper's figures 5 and 6, as PNG and SVG, that can be read when printed in grey."""

from __future__ import annotations

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
    "stress": _stress,
}
