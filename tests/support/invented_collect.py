"""Runs of `setnet collect` up to the labels without a photo being opened: people are directions in space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from setnet.collect import CollectRun, run_step
from setnet.collect.run import Row, pack
from setnet.collect.steps import STEPS, write_manifest
from tests.support.invented_photos import face_of

LANDMARKS = pack(np.zeros(10, np.float32))


def name_of(person: int) -> str:
    """Return what somebody is called."""
    return f"Person Number{chr(97 + person // 26)}{chr(97 + person % 26)}"


def write(run: CollectRun, step: str, rows: Iterable[Row]) -> None:
    """Write the manifest of a step as if it had been done."""
    write_manifest(run, STEPS[step], lambda _: rows)


def photo_row(run: CollectRun, name: str, faces: Sequence[tuple[int, int]], query: Sequence[int]) -> Row:
    """Return the row of a photo with the given (person, view) as faces."""
    return {
        "photo": str(Path(run.settings.photos[0]) / name),
        "kept": True,
        "width": 100 * len(faces),
        "height": 100,
        "query": [name_of(person) for person in query],
        "text": " and ".join(name_of(person) for person in query),
        "faces": [
            {
                "box": [100.0 * i + 10, 10.0, 100.0 * i + 90, 90.0],
                "score": 0.9,
                "landmarks": LANDMARKS,
                "descriptor": pack(face_of(person, view)),
            }
            for i, (person, view) in enumerate(faces)
        ],
    }


def invented_run(place: Path, people: int, photos: Sequence[Sequence[int]]) -> CollectRun:
    """Return a run, labelled: the first ``people`` are in the list, photos say who is in them.

    The first two of a photo's people who are in the list are its query. Others are asked about, however
    unlikely they are anybody of so short a list. Photo files are not there.
    """
    for folder in ("portraits", "archive"):
        (place / folder).mkdir(parents=True)
    run = CollectRun.begin(
        place / "run", portraits=place / "portraits", photos=[place / "archive"], ask_from=0.0
    )
    names = [{"entry": str(p), "name": name_of(p), "aliases": [], "kept": True} for p in range(people)]
    write(run, "names", names)
    portraits = [
        {"portrait": f"{p}-{k}", "name": name_of(p), "kept": True, "descriptor": pack(face_of(p, 1000 + k))}
        for p in range(people)
        for k in range(3)
    ]
    write(run, "portraits", portraits)
    rows = [
        photo_row(run, f"{n:06}.jpg", [(p, n) for p in members], [p for p in members if p < people][:2])
        for n, members in enumerate(photos)
    ]
    for step in ("captions", "pairs", "photos"):
        write(run, step, ())
    write(run, "faces", rows)
    write(run, "duplicates", ({"photo": row["photo"], "kept": True} for row in rows))
    write(run, "distractors", ())
    run_step(run, "labels")
    return run
