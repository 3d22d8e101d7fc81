"""The claim's table and figure, and the section of a page that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from setnet.evaluate.experiments.claim import FACES, ClaimResult, ClaimRow

__all__ = ["figure", "section", "table", "write_report"]

BEGIN, END = "<!-- claim: begin (written by `setnet train claim`) -->", "<!-- claim: end -->"
SHOWN = {
    "Descriptor-per-element": ("black", ":"),
    "Baseline": ("tab:blue", "--"),
    "Baseline-2 + W": ("tab:blue", "-"),
    "Baseline-GM-2 + W": ("tab:green", "-"),
    "SetNet": ("tab:red", "--"),
    "SetNet-3 + W": ("tab:red", "-"),
}


def table(result: ClaimResult) -> str:
    """Return the nDCG@10 and nDCG@30 of all methods as a Markdown table."""
    heads = [f"{n}/set" for n in FACES]
    lines = [
        "| method | nDCG@10: " + " | ".join(heads) + " | nDCG@30: " + " | ".join(heads) + " |",
        "|---|" + "---:|" * (2 * len(FACES)),
    ]
    for row in result.rows:
        lines.append(f"| {row.name} | " + " | ".join(f"{v:.1f}" for v in (*row.ndcg10, *row.ndcg30)) + " |")
    return "\n".join(lines)


def figure(rows: Sequence[ClaimRow], path: Path) -> None:
    """Draw nDCG@10 against faces per set for the main methods, as SVG."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "setnet"  # the same figure gives the same file
    canvas, axes = pyplot.subplots(figsize=(6.0, 4.0))
    for row in rows:
        if row.name in SHOWN:
            colour, line = SHOWN[row.name]
            axes.errorbar(
                FACES,
                row.ndcg10,
                row.error10,
                label=row.name,
                color=colour,
                linestyle=line,
                marker="o",
                capsize=2,
            )
    axes.set_xlabel("faces per set")
    axes.set_ylabel("nDCG@10 (%)")
    axes.set_xticks(FACES)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    canvas.tight_layout()
    canvas.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(canvas)


def section(result: ClaimResult, picture: str) -> str:
    """Return the page's section: what was done, the table, the learnt exponents, the figure."""
    settings = result.settings
    exponents = []
    for name, values in result.learnt_p.items():
        spread = f"{min(values):.2f} to {max(values):.2f}" if len(values) > 1 else f"{values[0]:.2f}"
        exponents.append(f"{name}: {spread}")
    return "\n".join(
        [
            "## The paper's claim, at a small size",
            "",
            f"Preset `{settings.preset}`, seed {settings.seed}: `{settings.backbone.name}` of width "
            f"{settings.backbone.width} on {settings.backbone.size}-pixel faces, {settings.pretrain.steps} "
            f"steps of softmax on {result.trained_people} people ({result.trained_faces} faces) of LFW's "
            f"training half, then {settings.sets.steps} steps of set training per method "
            f"({2 * settings.sets.identities} faces each, end to end). Test: {result.people} people of the "
            f"other half in {result.worlds} worlds of {result.sets:,} sets, up to 100 two-person queries, "
            "10 repeats, and distractors who have one photo; sized so that descriptor-per-element is neither "
            "perfect nor hopeless. (w, b) of each method fitted on 100 people of the training half that no "
            "network was trained on. Bars in the figure: standard error over worlds. "
            f"{result.seconds / 60:.0f} minutes in all.",
            "",
            table(result),
            "",
            "Learnt exponents p (started at 3): " + "; ".join(exponents) + ".",
            "",
            f"![nDCG@10 by faces per set]({picture})",
            "",
        ]
    )


def write_report(result: ClaimResult, page: Path) -> Path:
    """Put the section into `page` (in place of an earlier one, or at the end) and the figure beside it."""
    page.parent.mkdir(parents=True, exist_ok=True)
    picture = page.parent / "claim.svg"
    figure(result.rows, picture)
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    block = f"{BEGIN}\n{section(result, picture.name)}{END}\n"
    if BEGIN in text and END in text:
        before, rest = text.split(BEGIN, 1)
        text = before + block + rest.split(END, 1)[1].removeprefix("\n")
    else:
        text = f"{text.rstrip()}\n\n{block}" if text.strip() else block
    page.write_text(text, encoding="utf-8")
    return page
