"""The data card: what a data set holds, how it was made, what it may be used for, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from setnet.collect.result.paper_statistics import FACE_BINS, PEOPLE_BINS, label
from setnet.collect.run.run_folder import CollectRun

_STEPS = ("names", "portraits", "captions", "pairs", "photos", "faces", "duplicates", "labels")


def data_card(run: CollectRun, head: Mapping[str, Any], statistics: Mapping[str, Any]) -> str:
    """Return the data card as Markdown."""
    whole = statistics["all"]
    parts = [
        "# Data card",
        "",
        f"{whole['photos']:,} photos with {whole['faces']:,} faces, {whole['mean_faces_per_photo']} per "
        f"photo; {whole['known_faces']:,} faces are of {whole['people']:,} known people, the others of "
        "unknown ones. Made by `setnet collect` as section 4 of the paper describes it.",
        "",
        "## Size",
        "",
        *_sizes(statistics),
        "",
        "## Faces per photo",
        "",
        *_distribution(statistics, "faces_per_photo", [label(n, FACE_BINS) for n in FACE_BINS]),
        "",
        "## Known people per photo",
        "",
        *_distribution(statistics, "people_per_photo", [label(n, PEOPLE_BINS) for n in PEOPLE_BINS]),
        "",
        "## Queries",
        "",
        f"{statistics['queries']['two']} of two people and {statistics['queries']['three']} of three, who "
        "are together in some test photo; query faces are the portraits, which are in no photo.",
        "",
        "## How it was made",
        "",
        *_steps(run),
        "",
        f"Detector {run.settings.detector}, descriptor {head['descriptor']} ({head['dim']} numbers). A best "
        f"name of the query is accepted above {run.settings.rules.accept_query}, another one from "
        f"{run.settings.rules.accept_other} on; below {run.settings.rules.unknown_below} a face is unknown.",
        "",
        "## Files",
        "",
        "| file | what is in it |",
        "|---|---|",
        "| `photos/` | the photos |",
        "| `photos.jsonl` | a JSON object per photo: split, text, each face's box, name and who named it |",
        "| `descriptors.f32` | the faces' descriptors, float32, in the order of `photos.jsonl` |",
        "| `portraits.npz` | descriptors and names of the portraits, to query with |",
        "| `queries.json`, `statistics.json`, `data_set.json` | queries; these tables; splits, settings |",
        "",
        "## Limits",
        "",
        "- Labels come from captions and from similarity: people who look alike and whom a caption puts "
        "together can be confused, and unknown faces may be of people whose portrait is too unlike.",
        "- Training, validation and test people do not overlap; unknown people may.",
        "- Descriptors and names are personal data. Whether photos and labels may be stored, used or passed "
        "on is to be settled with those who are shown and with the owners of the photos.",
        "",
    ]
    return "\n".join(parts)


def _sizes(statistics: Mapping[str, Any]) -> list[str]:
    lines = ["| | photos | faces | known faces | people |", "|---|---|---|---|---|"]
    for name, found in _parts(statistics):
        cells = (found["photos"], found["faces"], found["known_faces"], found["people"])
        lines.append(f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    return lines


def _distribution(statistics: Mapping[str, Any], key: str, columns: Sequence[str]) -> list[str]:
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, found in _parts(statistics):
        lines.append(f"| {name} | " + " | ".join(f"{found[key][column]:,}" for column in columns) + " |")
    return lines


def _parts(statistics: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, found) for name, found in statistics.items() if name != "queries"]


def _steps(run: CollectRun) -> list[str]:
    lines = ["| step | entries | kept | dropped because |", "|---|---|---|---|"]
    for step in _STEPS:
        summary = run.manifest(step).summary()
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in summary.reasons.items())
        lines.append(f"| {step} | {summary.rows:,} | {summary.kept:,} | {reasons} |")
    return lines
