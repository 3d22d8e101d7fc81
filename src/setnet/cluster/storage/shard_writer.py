"""The one writer of a shard: takes over from the one before, changes the shard's index, publishes it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.cluster.storage import fence
from setnet.cluster.storage.cluster_file import ClusterFile, create_once
from setnet.cluster.storage.places import EpochFolder
from setnet.cluster.storage.published import Version
from setnet.cluster.storage.shard_repair import DAMAGED
from setnet.durable import storage_errors
from setnet.errors import ClusterError, FencedError, SetNetError, StorageError
from setnet.index import SetIndex, Settings, copy_items
from setnet.system import sync_folder

CENTRE = "code-centre.json"


class ShardWriter:
    """Changes a shard; a change is acknowledged by returning, and only while no later writer took over.

    The shard's index lies in a folder of this writer's own. It begins as a copy of the previous writer's, by
    links, so that nothing a stalled machine does later can reach it.
    """

    def __init__(self, root: Path, epoch: int, shard: int, *, growing: bool = False) -> None:
        self._root, self._epoch, self._growing = root, epoch, growing
        self._folder = EpochFolder(root, epoch)
        self.path = self._folder.shard(shard)
        self._require_epoch()
        with storage_errors(self.path, "cannot write a shard: "):
            self.number = fence.take_number(self.path)
            self._index = self._taken_over()
        self._version: Version | None = None
        self._changed = True

    def close(self) -> None:
        """Close the shard's index."""
        self._index.close()

    def add(
        self,
        ids: Sequence[str],
        elements: ArrayLike,
        counts: ArrayLike,
        attributes: Sequence[Mapping[str, Any] | None] | None = None,
        set_vectors: ArrayLike | None = None,
    ) -> None:
        """Add items as `SetIndex.add` does; a repeated call changes nothing."""
        with self._acknowledging():
            self._index.add(ids, elements, counts, attributes, set_vectors)

    def missing(self, ids: Sequence[str]) -> list[str]:
        """Return those ids that are not stored."""
        with self._while_mine():
            return [name for name in ids if name not in self._index]

    def elements(self, item: str) -> NDArray[np.float32]:
        """Return the elements of an item, published or not."""
        with self._while_mine():
            return self._index.elements(item)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete items; those that are not stored are left out."""
        with self._acknowledging():
            unknown = set(self.missing(ids))
            self._index.delete([name for name in ids if name not in unknown])

    def tag(self, gallery: Mapping[str, ArrayLike], threshold: float) -> int:
        """Write tags as `SetIndex.tag` does; return the number of entries."""
        with self._acknowledging():
            return self._index.tag(gallery, threshold)

    def compact(self, lists: bool | None = None) -> None:
        """Merge segments and take deleted items off the disk."""
        with self._acknowledging():
            self._index.compact(lists)
        for path in self.path.glob(f"{DAMAGED}-*"):
            shutil.rmtree(path, ignore_errors=True)

    def publish(self) -> Version:
        """Make the present state an immutable version that readers can open."""
        if self._version is None or self._changed:
            versions = self.path / "versions"
            versions.mkdir(mode=0o700, exist_ok=True)
            name = f"{self.number:06d}-{1 + _count(versions, self.number):06d}"
            with self._while_mine():
                self._version = Version(name, copy_by_links(self._index, versions / name, sealed=True))
            self._changed = False
        self._require_mine()
        return self._version

    def copy_to(self, folder: Path) -> None:
        """Copy the shard's index, by links, to a folder that appears when it is complete."""
        with self._while_mine():
            copy_by_links(self._index, folder)

    def copy_items(self, to: SetIndex, is_wanted: Callable[[str], bool]) -> None:
        """Copy those items whose ids are wanted to another index, as they are stored."""
        with self._while_mine():
            copy_items(self._index, to, is_wanted)

    @property
    def has_tags(self) -> bool:
        """Whether items of the shard have tags."""
        return self._index.stats().tags > 0

    @contextmanager
    def _acknowledging(self) -> Iterator[None]:
        """Run a change; leave without an error only if it counts."""
        self._changed = True
        with self._while_mine():
            yield

    @contextmanager
    def _while_mine(self) -> Iterator[None]:
        """Run a block, and raise `FencedError` when another took over; that may be why it failed."""
        try:
            yield
        except SetNetError:
            self._require_mine()
            raise
        self._require_mine()

    def _require_mine(self) -> None:
        with storage_errors(self.path):
            fence.require_number(self.path, self.number)
            self._require_epoch()

    def _require_epoch(self) -> None:
        now = ClusterFile.read(self._root)
        if now.epoch != self._epoch:
            raise FencedError(
                f"the shards of {self._root} are those of epoch {now.epoch}, not {self._epoch}: repeat the "
                "change"
            )
        if now.growing and not self._growing:
            raise FencedError(
                f"{self._root} is growing: repeat the change when that is done. If it was killed, `setnet "
                "cluster grow` completes it"
            )

    def _taken_over(self) -> SetIndex:
        """Return an index of this writer's own with all that earlier ones acknowledged."""
        own = self.path / f"work-{self.number:06d}"
        earlier = sorted(path for path in self.path.glob("work-*") if path.name < own.name)
        if earlier:
            with SetIndex.open(earlier[-1], read_only=True) as before:
                copy_by_links(before, own)
        else:
            self._create(own)
        opened = SetIndex.open(own)
        for path in [*earlier, *self.path.glob(".work-*")]:
            if path.name.lstrip(".") < own.name:
                shutil.rmtree(path, ignore_errors=True)
        fence.forget_numbers(self.path, self.number)
        return opened

    def _create(self, own: Path) -> None:
        settings = dict(ClusterFile.read(self._root).settings)
        sets = settings["sets"]
        given = sets is not None and sets["name"] == "given"
        draft = own.with_name(f".{own.name}")
        with SetIndex.create(
            draft,
            dim=settings["dim"],
            precision=settings["precision"],
            logistic=tuple(settings["logistic"]),
            head="none" if sets is None else None if given else sets["name"],
            set_dim=sets["dim"] if given else None,
            set_bits=32 if sets is None else sets["bits"],
            set_logistic=tuple(settings["set_logistic"]),
            code_centre=code_centre(self._root),
        ) as made:
            own_sets, expected = made.shape.sets, Settings.of_json(settings).shape.sets
        if own_sets != expected:
            shutil.rmtree(draft)
            raise ClusterError(
                f"the head {sets['name']!r} of this machine makes other set vectors than that of the cluster "
                f"{self._root}: install the same setnet and the same model files on all machines"
            )
        os.rename(draft, own)
        sync_folder(self.path)


def copy_by_links(index: SetIndex, to: Path, *, sealed: bool = False) -> int:
    """Copy an index by links to a folder that appears when it is complete; return its number of items.

    A ``sealed`` one is read only: its catalogue needs no shared memory, which machines do not share.
    """
    draft = to.with_name(f".{to.name}")
    shutil.rmtree(draft, ignore_errors=True)  # what a killed attempt left
    draft.mkdir(mode=0o700)
    done = index.backup(draft, link=True)
    if sealed:
        with closing(sqlite3.connect(draft / "catalog.sqlite")) as catalog:
            catalog.execute("PRAGMA journal_mode = DELETE")
    os.rename(draft, to)
    sync_folder(to.parent)
    return done.items


def _count(versions: Path, number: int) -> int:
    """Return how many versions a writer has published."""
    mine = (name[7:] for name in os.listdir(versions) if name.startswith(f"{number:06d}-"))
    return max((int(count) for count in mine if count.isdecimal()), default=0)


def code_centre(root: Path) -> list[float] | None:
    """Return what the codes of all shards are taken around; None as long as nothing was added."""
    path = root / CENTRE
    try:
        centre: list[float] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StorageError(f"{path} is damaged ({error}): bring it back from a backup") from None
    return centre


def fix_code_centre(root: Path, centre: list[float]) -> None:
    """Fix what the codes of all shards are taken around, unless it is fixed already."""
    create_once(root / CENTRE, json.dumps(centre).encode())
