"""A damaged shard is repaired: what is sound is found as before, and what is lost is named."""

from __future__ import annotations

import os
import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.cluster import ClusterIndex
from setnet.cluster.storage import shard_repair
from setnet.cluster.storage.places import shard_of
from setnet.cluster.storage.shard_writer import ShardWriter
from setnet.errors import FencedError

ROWS = np.linalg.qr(np.random.default_rng(5).normal(size=(24, 24)))[0].astype(np.float32)
IDS = [f"item {i}" for i in range(24)]
OF_SHARD_1 = {name for name in IDS if shard_of(name, 3) == 1}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cluster whose first twelve items are in one segment of their shard, the others in a second."""
    with ClusterIndex.create(tmp_path / "c", shards=3, dim=24) as index:
        for at in (0, 12):
            index.add(IDS[at : at + 12], ROWS[at : at + 12], [1] * 12)
        index.delete(IDS[:1])
        index.publish()
    return tmp_path / "c"


def found(index: ClusterIndex) -> set[str]:
    return {hit.id for hit in index.search(ROWS, k=24)}


def works(root: Path) -> list[Path]:
    return sorted(root.glob("epoch-*/shard-*/work-*"))


def test_a_damaged_segment_costs_its_items_alone(root: Path) -> None:
    segment = works(root)[1] / "segments" / "00000001.seg"
    with segment.open("r+b") as file:
        file.seek(segment.stat().st_size // 2)
        file.write(b"not what was there")
    with ClusterIndex.open(root) as index:
        assert "shard-0001" in index.check().problems[0]
        done = index.repair()
        (lost,) = done.lost
        assert lost.startswith("shard 1: segment 1: ")
        expected = set(IDS[1:]) - (OF_SHARD_1 & set(IDS[:12]))
        assert done.items == len(expected & OF_SHARD_1)
        assert found(index) == expected  # what was deleted stays so
        assert index.check().ok
        index.add(IDS[:12], ROWS[:12], [1] * 12)
        index.publish()
        assert found(index) == set(IDS)
        (kept,) = root.glob("epoch-*/shard-*/damaged-*")
        assert kept.parent.name == "shard-0001"
        index.compact()
        assert not kept.exists()
    with ClusterIndex.open(root) as again:
        assert again.repair().lost == ()
        assert found(again) == set(IDS)


def test_a_file_that_the_writer_lost_is_taken_from_what_is_published(root: Path) -> None:
    work = works(root)[1]
    (work / "segments" / "00000002.seg").unlink()
    (work / "catalog.sqlite").write_bytes(os.urandom(5000))
    with ClusterIndex.open(root) as index:
        # the catalogue is gone, and with it any tags: whether there were some nobody knows
        assert index.repair().lost == ("shard 1: tags: make them again with SetIndex.tag",)
        assert found(index) == set(IDS[1:])
        assert index.check().ok


def test_a_lost_version_is_published_again(root: Path) -> None:
    shutil.rmtree(next(root.glob("epoch-*/shard-0001/versions")))
    with ClusterIndex.open(root) as index:
        assert index.repair().lost == ()
        assert found(index) == set(IDS[1:])


def test_without_its_writers_folder_a_shard_is_what_was_published(root: Path) -> None:
    with ClusterIndex.open(root) as index:
        index.add(["late"], ROWS[:1], [1])
    for path in works(root):
        shutil.rmtree(path)
    with ClusterIndex.open(root) as index:
        assert index.repair().lost == tuple(
            f"shard {shard}: what was stored since the last publish" for shard in range(3)
        )
        assert found(index) == set(IDS[1:])


def test_a_shard_of_which_nothing_is_left_is_empty_afterwards(root: Path) -> None:
    shutil.rmtree(next(root.glob("epoch-*/shard-0001")))
    with ClusterIndex.open(root) as index:
        assert index.repair().lost == ("shard 1: all of it: nothing could be read",)
        assert found(index) == set(IDS[1:]) - OF_SHARD_1
        index.add(IDS, ROWS, [1] * 24)
        index.publish()
        assert found(index) == set(IDS)
        assert index.check().ok


@pytest.mark.parametrize("step", ["shard_repair._gather", "shard_repair.sync_folder", "fence.require_number"])
def test_a_killed_repair_loses_nothing(root: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (works(root)[1] / "segments" / "00000002.seg").unlink()

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"setnet.cluster.storage.{step}", kill)
        with pytest.raises(KeyboardInterrupt):
            shard_repair.repair_shard(root, 1, 1, revive=False)
    with ClusterIndex.open(root) as index:
        assert found(index) == set(IDS[1:])  # as published
        assert index.repair().lost == ()
        index.publish()
        assert found(index) == set(IDS[1:])
        assert index.check().ok


def test_a_repair_killed_when_the_damaged_folder_has_moved_loses_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ClusterIndex.open(root) as index:
        index.add(["late"], ROWS[:1], [1])
    (root / "epoch-0001/shard-0001/versions").rename(root / "away")

    def rename(old: Any, new: Any) -> None:
        os.replace(old, new)
        if "damaged" in Path(new).name:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        for shard in range(3):
            with suppress(KeyboardInterrupt):
                shard_repair.repair_shard(root, 1, shard, revive=False)
    with ClusterIndex.open(root) as index:
        index.publish()
        assert found(index) == {*IDS[1:], "late"}


def test_a_repair_during_which_another_writer_took_over_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (next(root.glob("epoch-*/shard-0001/versions/*/segments")) / "00000002.seg").unlink()

    def take_over(*given: Any) -> None:
        with closing(ShardWriter(root, 1, 1)) as writer:
            writer.add(["late"], ROWS[:1], [1])
        gather(*given)

    gather = shard_repair._gather
    monkeypatch.setattr(shard_repair, "_gather", take_over)
    with pytest.raises(FencedError):
        shard_repair.repair_shard(root, 1, 1, revive=False)
    monkeypatch.undo()
    with ClusterIndex.open(root) as index:
        assert index.repair().lost == ()
        assert found(index) == {*IDS[1:], "late"}


def test_a_sound_cluster_is_left_as_it_is(root: Path) -> None:
    before = works(root)
    with ClusterIndex.open(root) as index:
        assert (index.repair().items, index.repair().lost) == (0, ())
    assert works(root) == before
