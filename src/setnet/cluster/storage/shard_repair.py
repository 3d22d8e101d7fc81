"""Repairs a damaged shard, from its writer's folder and from what is published of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from setnet.cluster.storage import fence, published
from setnet.cluster.storage.cluster_file import ClusterFile
from setnet.cluster.storage.places import EpochFolder
from setnet.durable import storage_errors
from setnet.errors import FencedError, NotAnIndexError, SetNetError, StorageError
from setnet.index import RepairReport, SetIndex
from setnet.system import sync_folder

DAMAGED = "damaged"  # folders that a repair replaced, kept until the next `compact`


def repair_shard(root: Path, epoch: int, shard: int, revive: bool) -> RepairReport | None:
    """Repair a shard as `SetIndex.repair` does, in a new folder; None when there is nothing to repair.

    The repaired state is that of a writer of its own, so that no other acknowledges a change meanwhile. The
    next writer takes over from it.
    """
    folder = EpochFolder(root, epoch)
    listed = published.latest(folder).versions[shard : shard + 1]
    path, versions = folder.shard(shard), [folder.version(shard, version.name) for version in listed]
    works = sorted(path.glob("work-*"), reverse=True)[:1]
    if not listed and not works:
        return None  # nothing was ever stored
    if works and all(map(_is_sound, (*works, *versions))):
        return None
    if ClusterFile.read(root).growing:
        raise FencedError(f"{root} is growing: complete that with `setnet cluster grow`, then repair it")
    with storage_errors(path, "cannot repair a shard: "):
        number = fence.take_number(path, beyond=max((int(v.name[:6]) for v in listed), default=0))
        draft = path / f".work-{number:06d}"
        try:
            done = _saved(works, versions, draft, revive)
            if draft.exists():
                os.rename(draft, path / draft.name[1:])  # from now on the next writer takes over from it
                sync_folder(path)
        finally:
            fence.require_number(path, number)  # another writer may be why it failed
        for work in works:
            with suppress(FileNotFoundError):
                work.rename(path / f"{DAMAGED}-{work.name}")
    return done


def _saved(works: Sequence[Path], versions: Sequence[Path], draft: Path, revive: bool) -> RepairReport:
    """Return what could be saved, in ``draft``: of the writer's folder, else of the published version."""
    for source in (*works, *versions):
        shutil.rmtree(draft, ignore_errors=True)
        try:
            _gather(source, versions if source in works else (), draft)
            done = SetIndex.repair(draft, revive)
        except (FileNotFoundError, NotAnIndexError, StorageError) as error:
            if error.__cause__ is not None:  # the disk failed, which may pass
                raise
        else:
            lost = () if source in works else ("what was stored since the last publish",)
            return replace(done, lost=(*lost, *done.lost))
    shutil.rmtree(draft, ignore_errors=True)
    return RepairReport(0, 0, ("all of it: nothing could be read",), 0)


def _gather(source: Path, others: Sequence[Path], draft: Path) -> None:
    """Copy an index, segments by links; those that it lacks are put where a repair looks for them."""
    for place in ("segments", "quarantine"):
        (draft / place).mkdir(mode=0o700, parents=True)
    for file in source.iterdir():
        if file.is_file() and file.name != "lock":
            shutil.copyfile(file, draft / file.name)
    with suppress(FileNotFoundError):
        for segment in (source / "segments").iterdir():
            _link(segment, draft / "segments" / segment.name)
    for other in others:
        with suppress(FileNotFoundError):
            for segment in (other / "segments").iterdir():
                _link(segment, draft / "quarantine" / segment.name)


def _link(file: Path, to: Path) -> None:
    try:
        os.link(file, to)
    except PermissionError:  # a file system without links
        shutil.copyfile(file, to)


def _is_sound(folder: Path) -> bool:
    try:
        with SetIndex.open(folder, read_only=True) as index:
            return index.check().ok
    except SetNetError:
        return False
