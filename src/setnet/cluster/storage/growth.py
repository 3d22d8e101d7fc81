"""Growing a cluster: the items of each shard are spread over several, while searches use the old ones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from setnet.cluster.storage import published
from setnet.cluster.storage.cluster_file import MOST_SHARDS, ClusterFile
from setnet.cluster.storage.places import EpochFolder, shard_of
from setnet.cluster.storage.shard_writer import ShardWriter, code_centre, copy_by_links
from setnet.durable import storage_errors
from setnet.errors import InvalidInputError
from setnet.index import SetIndex
from setnet.system import FileLock

CHUNK = 8192  # items deleted at once


def grow(root: Path, shards: int) -> None:
    """Spread a cluster's items over ``shards`` shards, a multiple of the present number.

    An item's shard is its hash modulo the number of shards: in a multiple of it, the items of one new shard
    all come from one old one. So each new shard is a copy, by links, without the others' items. Searches use
    the old shards until `cluster.json` is replaced in the end. A growth that was killed is completed by the
    next one; until then no change is acknowledged, since it might be one that was not copied.
    """
    file = ClusterFile.read(root)
    if type(shards) is not int or shards % file.shards or not file.shards < shards <= MOST_SHARDS:
        raise InvalidInputError(
            f"{root} has {file.shards} shards and can grow to a multiple of that, up to {MOST_SHARDS}, not "
            f"to {shards!r}"
        )
    alone = FileLock(root / "growing.lock")
    try:
        _grow(root, file, shards)
    finally:
        alone.close()


def _grow(root: Path, file: ClusterFile, shards: int) -> None:
    grown = file.grown(shards)
    old, new = EpochFolder(root, file.epoch), EpochFolder(root, grown.epoch)
    with storage_errors(root, "cannot grow: "):
        replace(file, growing=True).write(root)
        shutil.rmtree(new.path, ignore_errors=True)  # what a killed attempt left
        if code_centre(root) is not None:
            versions: list[published.Version] = [published.Version("", 0)] * shards
            for shard in range(file.shards):
                writer = ShardWriter(root, file.epoch, shard, growing=True)
                try:
                    for number in range(shard, shards, file.shards):
                        versions[number] = _part(writer, new, number, shards)
                finally:
                    writer.close()
            published.publish(new, versions)
        grown.write(root)
        # Searches that read `cluster.json` before still use the old shards: they go with the next growth.
        for path in root.glob("epoch-*"):
            if path.name < old.path.name:
                shutil.rmtree(path, ignore_errors=True)


def _part(writer: ShardWriter, new: EpochFolder, number: int, shards: int) -> published.Version:
    """Make a new shard of those items of an old one that belong to it, and a version of it."""
    folder = new.shard(number)
    folder.mkdir(mode=0o700, parents=True)
    work = folder / "work-000000"
    writer.copy_to(work)
    with SetIndex.open(work) as index:
        others = [item.id for item in index.items() if shard_of(item.id, shards) != number]
        for at in range(0, len(others), CHUNK):
            index.delete(others[at : at + CHUNK])
        index.compact()
        (folder / "versions").mkdir(mode=0o700)
        name = "000000-000001"
        return published.Version(name, copy_by_links(index, folder / "versions" / name, sealed=True))
