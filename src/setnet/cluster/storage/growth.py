"""Growing a cluster: the items of each shard are spread over several, while searches use the old ones."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from math import gcd
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
    """Spread a cluster's items over a larger number of shards.

    An item's shard is its hash modulo the number of shards. A new shard begins as a copy, by links, of an old
    one without the others' items. If the new number is a multiple of the old one, these are all of its items,
    else items of further old shards are copied to it. Searches use the old shards until `cluster.json` is
    replaced in the end. A growth that was killed is completed by the next one; until then no change is
    acknowledged, since it might be one that was not copied.
    """
    file = ClusterFile.read(root)
    if type(shards) is not int or not file.shards < shards <= MOST_SHARDS:
        raise InvalidInputError(
            f"{root} has {file.shards} shards and can grow to a larger number, up to {MOST_SHARDS}, not to "
            f"{shards!r}"
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
        new.path.mkdir(mode=0o700)
        if code_centre(root) is not None:
            with ExitStack() as opened:
                writers = [
                    opened.enter_context(closing(ShardWriter(root, file.epoch, shard, growing=True)))
                    for shard in range(file.shards)
                ]
                if shards % file.shards and any(writer.has_tags for writer in writers):
                    replace(file, growing=False).write(root)
                    raise InvalidInputError(
                        f"items of {root} have tags, which cannot move to {shards} shards: grow to a "
                        f"multiple of {file.shards}"
                    )
                versions = [_part(writers, new, number, shards) for number in range(shards)]
            published.publish(new, versions)
        grown.write(root)
        # Searches that read `cluster.json` before still use the old shards: they go with the next growth.
        for path in root.glob("epoch-*"):
            if path.name < old.path.name:
                shutil.rmtree(path, ignore_errors=True)


def _part(writers: Sequence[ShardWriter], new: EpochFolder, number: int, shards: int) -> published.Version:
    """Make a new shard of those items of old ones that belong to it, and a version of it."""
    # Two remainders of one number agree modulo a common divisor: no other old shard has items of this one.
    step = gcd(len(writers), shards)
    first, *others = writers[number % step :: step]
    folder = new.shard(number)
    folder.mkdir(mode=0o700)
    work = folder / "work-000000"
    first.copy_to(work)
    with SetIndex.open(work) as index:
        strangers = [item.id for item in index.items() if shard_of(item.id, shards) != number]
        for at in range(0, len(strangers), CHUNK):
            index.delete(strangers[at : at + CHUNK])
        for writer in others:
            writer.copy_items(index, lambda item: shard_of(item, shards) == number)
        index.compact()
        (folder / "versions").mkdir(mode=0o700)
        name = "000000-000001"
        return published.Version(name, copy_by_links(index, folder / "versions" / name, sealed=True))
