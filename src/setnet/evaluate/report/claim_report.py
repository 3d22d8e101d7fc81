"""The claim's section of a page: what was done, the tables, the learned exponents and the figure."""

from __future__ import annotations

from pathlib import Path

from setnet.evaluate.experiments.claim.domains import REPEATS
from setnet.evaluate.report.claim_rows import is_reproduced, leads, over_seeds
from setnet.evaluate.report.experiment_tables import tables_of
from setnet.evaluate.report.page import with_block
from setnet.evaluate.report.plots import plots_of
from setnet.evaluate.report.record import Record, Row
from setnet.train import WITHOUT

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
