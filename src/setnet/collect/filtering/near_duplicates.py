"""One photo of each group of near-duplicates: found per person, united over people (section 4)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from setnet.collect.run.manifest import Row
from setnet.collect.run.run_folder import CollectRun
from setnet.library import FolderScan


def duplicate_rows(run: CollectRun) -> Iterator[Row]:
    """Yield a row per photo that has enough faces: kept, or dropped as the copy of another.

    Photos are compared with those of the same people and with these people's portraits; groups that share a
    photo are one. The first photo of a group is kept, which is the largest; none of a group in which a
    portrait is, or a photo of another collection that was to be left out.
    """
    from setnet.library import DuplicateGroup, find_duplicates, merged_groups

    of_person: dict[str, list[str]] = defaultdict(list)
    photos: list[str] = []
    for row in run.manifest("faces").kept():
        photos.append(row["photo"])
        for name in row["query"]:
            of_person[name].append(row["photo"])
    apart = _portraits(run)
    groups: list[DuplicateGroup] = []
    for name, own in of_person.items():
        groups += find_duplicates([Path(path) for path in (*own, *apart.get(name, ()))])
    others = list(_files(run.settings.exclude))
    if others:
        groups += find_duplicates([Path(path) for path in (*photos, *others)])
    known = set(photos)
    outside = {path for files in apart.values() for path in files} | set(others)
    dropped: dict[str, tuple[str, str]] = {}
    for group in merged_groups(groups):
        members = [os.fspath(path) for path in group.photos]
        shared = [path for path in members if path in outside and path not in known]
        inside = [path for path in members if path in known]
        if shared:
            dropped |= dict.fromkeys(inside, ("in another collection", shared[0]))
        else:
            dropped |= dict.fromkeys(inside[1:], ("near-duplicate", inside[0]))
    for photo in photos:
        if photo in dropped:
            reason, of = dropped[photo]
            yield {"photo": photo, "kept": False, "reason": reason, "detail": of}
        else:
            yield {"photo": photo, "kept": True}


def _portraits(run: CollectRun) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in run.manifest("portraits").kept():
        found[row["name"]].append(row["portrait"])
    return found


def _files(folders: Sequence[str]) -> Iterator[str]:
    return (os.fsdecode(file.path) for file in FolderScan([os.fsencode(f) for f in folders]).files())
