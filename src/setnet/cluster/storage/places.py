"""Which shard holds an item, and the folders of a cluster's shards."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


def shard_of(item: str, shards: int) -> int:
    """Return the shard that holds an item, by a hash of its id.

    In a cluster of twice as many shards an item stays, or moves to the shard that many places on.

    >>> shard_of("photo 1", 4), shard_of("photo 1", 8), shard_of("photo 2", 4), shard_of("photo 2", 8)
    (3, 3, 0, 4)
    """
    return int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest(), "little") % shards


@dataclass(frozen=True, slots=True)
class EpochFolder:
    """The folder of an epoch's shards, with the lists of what is published."""

    root: Path
    epoch: int

    @property
    def path(self) -> Path:
        """The folder of the epoch."""
        return self.root / f"epoch-{self.epoch:04d}"

    @property
    def published(self) -> Path:
        """The folder of the lists of what is published."""
        return self.path / "published"

    def shard(self, number: int) -> Path:
        """Return the folder of a shard."""
        return self.path / f"shard-{number:04d}"

    def version(self, shard: int, name: str) -> Path:
        """Return the folder of a published version of a shard."""
        return self.shard(shard) / "versions" / name
