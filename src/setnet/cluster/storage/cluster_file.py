"""`cluster.json`: what a cluster is, in one small file that is replaced as a whole."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from setnet.durable import replace_file
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError, VersionError
from setnet.index import Settings
from setnet.system import sync_folder

NAME = "cluster.json"
FORMAT = 1
MOST_SHARDS = 4096
MOST_REPLICAS = 16


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """What is fixed about a cluster, and the epoch of its shards.

    Attributes
    ----------
    cluster
        A random name, which tells two clusters apart.
    epoch
        Counts up when the number of shards changes: shards of an epoch lie in a folder of their own, and a
        writer of an earlier epoch is refused.
    shards
        Number of shards.
    replicas
        How many workers may be asked for a shard.
    settings
        Those of every shard's index, with the fingerprint of the head that makes set vectors.
    growing
        Whether the items are being spread over more shards: no change is acknowledged meanwhile.
    """

    cluster: str
    epoch: int
    shards: int
    replicas: int
    settings: Mapping[str, Any]
    growing: bool = False

    @classmethod
    def create(cls, root: Path, shards: int, replicas: int, settings: Settings) -> ClusterFile:
        """Write the file of a new cluster into a folder that is new or empty."""
        for what, value, most in (("shards", shards, MOST_SHARDS), ("replicas", replicas, MOST_REPLICAS)):
            if type(value) is not int or not 1 <= value <= most:
                raise InvalidInputError(f"{what} is {value!r}: a whole number from 1 to {most} is expected")
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(path.name != f"{NAME}.new" for path in root.iterdir()):
            what = "a cluster" if (root / NAME).exists() else "other files"
            raise InvalidInputError(
                f"{root} holds {what} already: open it, or create the cluster in a new folder"
            )
        made = cls(secrets.token_hex(8), 1, shards, replicas, settings.as_json())
        made.write(root)
        sync_folder(root.parent)
        return made

    @classmethod
    def read(cls, root: Path) -> ClusterFile:
        """Return the cluster in a folder; an error says what is there instead."""
        path = root / NAME
        try:
            stored = json.loads(path.read_bytes())
            if stored["format"] > FORMAT:
                raise VersionError(
                    f"{path} was written by a newer setnet (format {stored['format']}, this one reads "
                    f"{FORMAT}): upgrade setnet on this machine"
                )
            found = cls(**{name: stored[name] for name in cls.__dataclass_fields__})
            Settings.of_json(found.settings)
            if not (0 < found.shards <= MOST_SHARDS and found.replicas > 0 and found.epoch > 0):
                raise ValueError
            return found
        except FileNotFoundError:
            raise NotAnIndexError(
                f"{root} holds no cluster: `setnet cluster create {root}` makes one"
            ) from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(f"{path} is damaged ({error!r}): bring it back from a backup") from None

    def write(self, root: Path) -> None:
        """Replace the file: a crash leaves the old one or the new one."""
        data = {"format": FORMAT, **asdict(self), "settings": dict(self.settings)}
        replace_file(root / NAME, json.dumps(data, indent=1).encode())

    def grown(self, shards: int) -> ClusterFile:
        """Return the file of the next epoch, with more shards."""
        return replace(self, epoch=self.epoch + 1, shards=shards, growing=False)


def create_once(path: Path, data: bytes) -> bool:
    """Create a file with its content unless there is one, on shared storage too; tell whether it was made.

    A link is made in one step everywhere, and fails where the name is taken.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync_folder(path.parent)
    return True
