"""The claim's section of a page: what was done, the tables, the learned exponents and the figure."""

from __future__ import annotations

from pathlib import Path

from setnet.evaluate.report.experiment_tables import tables_of
from setnet.evaluate.report.page import with_block
from setnet.evaluate.report.plots import plots_of
from setnet.evaluate.report.record import Record


def section(record: Record, picture: str) -> str:
    """Return the section as Markdown; `picture` is the path of the figure from the page."""
    settings, extra = record.settings, record.extra
    backbone, sets = settings["backbone"], settings["sets"]
    return "\n".join(
        [
            "## The paper's claim, at a small size",
            "",
            f"Preset `{settings['preset']}`, seed {settings['seed']}: `{backbone['name']}` of width "
            f"{backbone['width']} on {backbone['size']}-pixel faces, {settings['pretrain']['steps']} steps "
            f"of softmax on {extra['trained_people']} people ({extra['trained_faces']} faces) of LFW's "
            f"training half, then {sets['steps']} steps of set training per method "
            f"({2 * sets['identities']} faces each, end-to-end). Test: {extra['people']} people of the other "
            f"half in {extra['worlds']} worlds of {extra['size'][1]:,} sets, up to 100 two-person queries, "
            "10 repeats, and distractors who have one photo; sized so that descriptor-per-element is neither "
            "saturated nor near chance. (w, b) of each method fitted on 100 people of the training half that "
            "no network was trained on. Standard errors are over worlds. "
            f"{record.machine['seconds'] / 60:.0f} minutes in all.",
            "",
            *(table.markdown() for table in tables_of(record)),
            f"Learned exponents p (started at 3): {_exponents(record)}.",
            "",
            f"![nDCG@10 by faces per set]({picture})",
        ]
    )


def write_report(record: Record, page: Path) -> Path:
    """Put the section into `page` (in place of an earlier one, or at the end) and the figure beside it."""
    (picture,) = plots_of(record, page.parent)
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    page.write_text(with_block(text, "claim", section(record, picture.name)).lstrip("\n"), encoding="utf-8")
    return page


def _exponents(record: Record) -> str:
    return "; ".join(
        f"{name}: {min(values):.2f}" + (f" to {max(values):.2f}" if len(values) > 1 else "")
        for name, values in record.extra["exponents"].items()
    )
