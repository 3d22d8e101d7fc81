"""One photo of each group of near-duplicates: found per person, united over people (section 4)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from setnet.collect.run import CollectRun, Row, Work
from setnet.library import DuplicateGroup
from setnet.library.duplicates import DescribedPhoto, PhotoPairs, group_duplicates, merge_groups
from setnet.library.folder_scan import FolderScan


def duplicate_rows(run: CollectRun, work: Work) -> Iterator[Row]:
    """Yield a row per photo that has enough faces: kept, or dropped as the copy of another.

    Photos are compared with those of the same people and with these people's portraits; groups that share a
    photo are one. The first photo of a group is kept, which is the largest; none of a group in which a
    portrait is, or a photo of another collection that was to be left out.
    """
    of_person: dict[str, list[str]] = defaultdict(list)
    photos: list[str] = []
    for row in run.manifest("faces").kept_rows():
        photos.append(row["photo"])
        for name in row["query"]:
            of_person[name].append(row["photo"])
    apart, others = _portraits(run), _files(run.settings.exclude)
    groups: list[DuplicateGroup] = []
    with _Comparison(work.processes) as compare:
        for name, own in of_person.items():
            groups += compare.groups([*own, *apart.get(name, ())])
        if others:
            groups += compare.groups([*photos, *others])
    outside = {path for files in apart.values() for path in files} | set(others)
    dropped = _choose_dropped(groups, set(photos), outside)
    for photo in photos:
        if photo in dropped:
            reason, of = dropped[photo]
            yield {"photo": photo, "kept": False, "reason": reason, "detail": of}
        elif photo in compare.failures:
            yield {"photo": photo, "kept": True, "detail": f"not compared: {compare.failures[photo]}"}
        else:
            yield {"photo": photo, "kept": True}


class _Comparison:
    """Groups photos many times and reads each once: a photo of several people is compared for each."""

    def __init__(self, workers: int) -> None:
        self._pairs = PhotoPairs(workers, self._record_failure)
        self._known: dict[bytes, DescribedPhoto] = {}
        self.failures: dict[str, str] = {}

    def __enter__(self) -> _Comparison:
        return self

    def __exit__(self, *_: object) -> None:
        self._pairs.close()

    def groups(self, photos: Sequence[str]) -> list[DuplicateGroup]:
        paths = sorted({os.fsencode(photo) for photo in photos})
        known = {path: self._known[path] for path in paths if path in self._known}
        return group_duplicates(paths, known=known, on_described=self._keep, pairs=self._pairs)

    def _record_failure(self, photo: bytes, reason: str) -> None:
        self.failures[os.fsdecode(photo)] = reason

    def _keep(self, described: Sequence[DescribedPhoto]) -> None:
        self._known |= {photo.path: photo for photo in described}


def _choose_dropped(
    groups: Sequence[DuplicateGroup], photos: Collection[str], outside: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Return the photos to drop, each with the reason and the file it is a copy of."""
    dropped: dict[str, tuple[str, str]] = {}
    for group in merge_groups(groups):
        members = [os.fspath(path) for path in group.photos]
        inside = [path for path in members if path in photos]
        shared = [path for path in members if path in outside and path not in photos]
        if shared:
            dropped |= dict.fromkeys(inside, ("in another collection", shared[0]))
        else:
            dropped |= dict.fromkeys(inside[1:], ("near-duplicate", inside[0]))
    return dropped


def _portraits(run: CollectRun) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in run.manifest("portraits").kept_rows():
        found[row["name"]].append(row["portrait"])
    return found


def _files(folders: Sequence[str]) -> list[str]:
    return [os.fsdecode(file.path) for file in FolderScan([os.fsencode(f) for f in folders]).files()]
