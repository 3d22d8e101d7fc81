"""One photo of each group of near-duplicates (section 4)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from setnet.collect.run import CollectRun, Row, Work
from setnet.library import DuplicateGroup
from setnet.library.duplicates import group_duplicates
from setnet.library.folder_scan import FolderScan


def duplicate_rows(run: CollectRun, work: Work) -> Iterator[Row]:
    """Yield a row per photo that has enough faces: kept, or dropped as the copy of another.

    The first photo of a group is kept, which is the largest; none of a group in which a portrait is, or a
    photo of another collection that was to be left out.
    """
    photos = [row["photo"] for row in run.manifest("faces").kept_rows()]
    excluded = FolderScan([os.fsencode(folder) for folder in run.settings.exclude]).files()
    outside = {row["portrait"] for row in run.manifest("portraits").kept_rows()}
    outside |= {os.fsdecode(file.path) for file in excluded}
    failures: dict[str, str] = {}

    def failed(path: Path, reason: str) -> None:
        failures[os.fspath(path)] = reason

    paths = sorted({os.fsencode(path) for path in (*photos, *outside)})
    groups = group_duplicates(paths, workers=work.processes, on_failure=failed)
    dropped = _choose_dropped(groups, set(photos), outside)
    for photo in photos:
        if photo in dropped:
            reason, of = dropped[photo]
            yield {"photo": photo, "kept": False, "reason": reason, "detail": of}
        elif photo in failures:
            yield {"photo": photo, "kept": True, "detail": f"not compared: {failures[photo]}"}
        else:
            yield {"photo": photo, "kept": True}


def _choose_dropped(
    groups: Sequence[DuplicateGroup], photos: Collection[str], outside: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Return the photos to drop, each with the reason and the file it is a copy of."""
    dropped: dict[str, tuple[str, str]] = {}
    for group in groups:
        members = [os.fspath(path) for path in group.photos]
        inside = [path for path in members if path in photos]
        shared = [path for path in members if path in outside and path not in photos]
        if shared:
            dropped |= dict.fromkeys(inside, ("in another collection", shared[0]))
        else:
            dropped |= dict.fromkeys(inside[1:], ("near-duplicate", inside[0]))
    return dropped
