"""A damaged index is rebuilt from its segments, and nothing that was deleted comes back."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError

DIM = 8


def rows(seed: int, count: int = 2) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)


def held(path: Path) -> dict[str, tuple[bytes, dict[str, object]]]:
    with SetIndex.open(path) as index:
        assert index.check().problems == []
        return {item.id: (index.elements(item.id).tobytes(), dict(item.attributes)) for item in index}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """An index with upserts, deletions, an item deleted and added again, and a merge behind it."""
    path = tmp_path / "i"
    with SetIndex.create(path, DIM, logistic=(11.0, -4.0)) as index:
        for n in range(12):
            index.add([f"a{n}", f"b{n}"], np.concatenate([rows(n), rows(50 + n)]), [2, 2],
                      attributes=[{"n": n, "who": "A"}, None])  # fmt: skip
        index.add(["a3"], rows(99, 3), [3], attributes=[{"n": -3}])
        index.delete(["b1", "b7", "a5"])
        index.add(["a5"], rows(98, 1), [1])
    return path


@pytest.mark.parametrize("damage", ["deleted", "garbage", "cut short", "rows"])
def test_everything_comes_back_and_nothing_deleted_does(stored: Path, damage: str) -> None:
    before = held(stored)
    with SetIndex.open(stored, read_only=True) as index:
        answer = index.search(rows(3), k=30, where={"n": {">=": 2}})
    catalog = stored / "catalog.sqlite"
    whole = catalog.read_bytes()
    if damage == "deleted":
        catalog.unlink()
    elif damage == "garbage":
        catalog.write_bytes(np.random.default_rng(0).bytes(len(whole)))
    elif damage == "cut short":
        catalog.write_bytes(whole[: len(whole) // 2])
    else:
        catalog.write_bytes(whole.replace(b"a3", b"zz"))
    report = SetIndex.repair(stored)
    assert (report.items, report.revived) == (22, 0)
    assert held(stored) == before
    with SetIndex.open(stored, read_only=True) as index:
        assert index.search(rows(3), k=30, where={"n": {">=": 2}}) == answer
        assert (index.logistic.w, index.logistic.b) == (11.0, -4.0)


def test_a_flip_in_sqlites_log_is_refused_and_repaired(stored: Path, tmp_path: Path) -> None:
    with SetIndex.open(stored) as index:
        index.add(["late"], rows(7), [2])
        shutil.copytree(stored, tmp_path / "crashed")
    crashed = tmp_path / "crashed"
    log = crashed / "catalog.sqlite-wal"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    with pytest.raises(StorageError, match="write-ahead log was damaged"):
        SetIndex.open(crashed)
    with SetIndex.open(crashed, read_only=True) as index:
        assert "stored changes" in index.check().problems[0]
    SetIndex.repair(crashed)
    assert "late" in held(crashed)


def test_a_damaged_segment_costs_its_items_only(stored: Path) -> None:
    before = held(stored)
    victim = max((stored / "segments").iterdir())
    data = bytearray(victim.read_bytes())
    data[100] ^= 1
    victim.write_bytes(data)
    report = SetIndex.repair(stored)
    assert any(victim.name in text for text in report.lost)
    after = held(stored)
    assert 0 < len(after) < len(before)
    assert all(before[name] == value for name, value in after.items())


def test_an_index_without_log_and_sound_catalogue_revives_only_when_allowed(stored: Path) -> None:
    with closing(sqlite3.connect(stored / "catalog.sqlite")) as db, db:
        db.execute("DELETE FROM items WHERE id = 'a0'")
    (stored / "commits.log").unlink()
    with pytest.raises(InvalidInputError, match="revive"):
        SetIndex.repair(stored)
    report = SetIndex.repair(stored, revive=True)
    assert report.revived > 0
    assert {"a0", "a3", "a5", "b1"} <= set(held(stored))


def test_deletions_hold_without_a_log_while_the_catalogue_is_sound(stored: Path) -> None:
    before = held(stored)
    (stored / "commits.log").unlink()
    assert SetIndex.repair(stored).revived == 0
    assert held(stored) == before


@pytest.mark.parametrize("compacted", [False, True])
def test_a_log_behind_the_catalogue_is_the_damaged_one(stored: Path, compacted: bool) -> None:
    """Whatever its length, a cut log never costs an item that the catalogue and the segments have."""
    with SetIndex.open(stored) as index:
        index.delete(["b2"])
        if compacted:
            index.compact()
    before = held(stored)
    log = stored / "commits.log"
    whole = log.read_bytes()
    for end in {0, 1, *np.linspace(2, len(whole) - 1, 12).astype(int).tolist(), whole.find(b"\n") + 1}:
        log.write_bytes(whole[:end])
        report = SetIndex.repair(stored)
        assert (report.items, report.lost, report.revived) == (len(before), (), 0), end
        with SetIndex.open(stored) as index:
            index.compact()
        assert held(stored) == before, end


def test_a_cut_log_without_a_catalogue_drops_no_segment_in_silence(stored: Path) -> None:
    before = held(stored)
    (stored / "catalog.sqlite").unlink()
    log = stored / "commits.log"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    with pytest.raises(InvalidInputError, match="more than its commit log says"):
        SetIndex.repair(stored)
    SetIndex.repair(stored, revive=True)
    assert before.keys() <= held(stored).keys()


def test_files_that_were_never_stored_are_named(stored: Path) -> None:
    extra = stored / "segments" / "00000001.seg"
    assert not extra.exists(), "merged"
    shutil.copyfile(max((stored / "segments").iterdir()), extra)
    assert SetIndex.repair(stored).set_aside == (extra.name,)


def test_what_cannot_be_repaired_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotAnIndexError, match="nothing to repair"):
        SetIndex.repair(tmp_path)
    SetIndex.create(tmp_path / "i", DIM).close()
    (tmp_path / "i" / "catalog.sqlite").unlink()
    with pytest.raises(NotAnIndexError, match="repair"):
        SetIndex.open(tmp_path / "i")
    assert SetIndex.repair(tmp_path / "i").items == 0
    assert held(tmp_path / "i") == {}


def test_the_replaced_catalogue_is_gone_after_a_compaction(stored: Path) -> None:
    (stored / "catalog.sqlite").write_bytes(b"secret garbage")
    SetIndex.repair(stored)
    assert (stored / "quarantine" / "catalog.sqlite").read_bytes() == b"secret garbage"
    with SetIndex.open(stored) as index:
        index.compact()
    assert not any((stored / "quarantine").iterdir())
