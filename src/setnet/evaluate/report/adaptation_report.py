"""The section of a page about an adaptation: what was done, whether it pays, the tables."""

from __future__ import annotations

from pathlib import Path

from setnet.evaluate.report.adaptation_tables import adaptation_tables, verdict
from setnet.evaluate.report.page import with_block
from setnet.evaluate.report.record import Record


def write_adaptation(record: Record, page: Path) -> Path:
    """Put the section into `page`, in place of an earlier one or at the end."""
    parts = [
        "## SFace adapted to degraded photos\n",
        f"{verdict(record)}\n",
        f"{_done(record)}\n",
        *(table.markdown() for table in adaptation_tables(record)),
    ]
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    page.write_text(with_block(text, "train adapt", "\n".join(parts)).lstrip("\n"), encoding="utf-8")
    return page


def _done(record: Record) -> str:
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
