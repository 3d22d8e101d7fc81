"""What searches see: one list of all shards' versions, so that every shard answers as of the same moment."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from setnet.cluster.storage.cluster_file import create_once
from setnet.cluster.storage.places import EpochFolder
from setnet.errors import StorageError

KEPT = 3  # lists whose versions stay on disk, for searches that began with them


@dataclass(frozen=True, slots=True)
class Version:
    """A published state of a shard: the name of its folder, by which versions are ordered, and its size."""

    name: str
    items: int


@dataclass(frozen=True, slots=True)
class Published:
    """A version of every shard; 0 is the number of the list in the beginning, which is empty."""

    number: int = 0
    versions: tuple[Version, ...] = ()

    @property
    def items(self) -> int:
        """Number of items that searches see."""
        return sum(version.items for version in self.versions)


def latest(folder: EpochFolder) -> Published:
    """Return the list that counts: that of the highest number."""
    numbers = _numbers(folder)
    return _read(folder, numbers[-1]) if numbers else Published()


def publish(folder: EpochFolder, versions: Sequence[Version]) -> Published:
    """Let searches see these versions, or later ones that another has published meanwhile."""
    folder.published.mkdir(mode=0o700, exist_ok=True)
    while True:
        before = latest(folder)
        newest = tuple(max(pair, key=lambda v: v.name) for pair in _pairs(versions, before.versions))
        if newest == before.versions:
            return before
        made = Published(before.number + 1, newest)
        data = json.dumps([asdict(version) for version in newest]).encode()
        if create_once(_path(folder, made.number), data):
            drop_old(folder)
            return made


def _pairs(new: Sequence[Version], old: Sequence[Version]) -> list[tuple[Version, Version]]:
    return list(zip(new, old or new, strict=True))


def _path(folder: EpochFolder, number: int) -> Path:
    return folder.published / f"{number:08d}.json"


def _numbers(folder: EpochFolder) -> list[int]:
    try:
        names = os.listdir(folder.published)
    except FileNotFoundError:
        return []
    return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdecimal())


def _read(folder: EpochFolder, number: int) -> Published:
    path = _path(folder, number)
    try:
        return Published(number, tuple(Version(**version) for version in json.loads(path.read_bytes())))
    except FileNotFoundError:  # a newer one took its place meanwhile
        return latest(folder)
    except (ValueError, TypeError, RecursionError) as error:
        raise StorageError(f"{path} is damaged ({error!r}): delete it, then publish again") from None


def drop_old(folder: EpochFolder, kept: int = KEPT) -> None:
    """Delete all but the latest lists and their versions; versions not yet listed are later ones."""
    numbers = _numbers(folder)
    if not numbers:
        return
    for number in numbers[:-kept]:
        _path(folder, number).unlink(missing_ok=True)
    for shard, version in enumerate(_read(folder, numbers[-kept:][0]).versions):
        versions = folder.shard(shard) / "versions"
        for name in os.listdir(versions):
            if name.lstrip(".") < version.name:
                shutil.rmtree(versions / name, ignore_errors=True)
