"""Merges and backups copy no damage: a checksum that does not fit is an error before anything is replaced."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import writer
from setnet.errors import StorageError

ROWS = np.eye(4, dtype=np.float32)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """An index of three segments; a bit of the elements of the second is flipped."""
    with SetIndex.create(tmp_path / "i", 4) as index:
        for name in "abc":
            index.add([name], ROWS[:2] + 0.25, [2])
        at = index._reader.snapshot().segments[1].file.entry("elements").offset
    victim = tmp_path / "i" / "segments" / "00000002.seg"
    data = bytearray(victim.read_bytes())
    data[at + 1] ^= 0x10
    victim.write_bytes(data)
    return tmp_path / "i"


def test_compact_names_the_segment_and_replaces_nothing(damaged: Path) -> None:
    before = {path: path.read_bytes() for path in (damaged / "segments").iterdir()}
    with SetIndex.open(damaged) as index:
        with pytest.raises(StorageError, match=r"00000002\.seg.*repair"):
            index.compact()
        assert not index.check().ok, "the damage can still be seen"
        assert {item.id for item in index} == set("abc")
    assert {path: path.read_bytes() for path in (damaged / "segments").iterdir()} == before
    SetIndex.repair(damaged)
    with SetIndex.open(damaged) as index:
        index.compact()
        assert [item.id for item in index] == ["a", "c"]
        assert index.check().ok


def test_an_add_is_stored_when_the_merge_after_it_finds_damage(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "MERGE", 3)
    with SetIndex.open(damaged) as index, caplog.at_level(logging.WARNING):
        index.add(["d"], ROWS[2:], [2])
        assert index.stats().segments == 4
        np.testing.assert_array_equal(index.elements("d"), ROWS[2:])
    assert "00000002.seg" in caplog.text


def test_a_backup_copies_no_damaged_segment(damaged: Path, tmp_path: Path) -> None:
    with SetIndex.open(damaged, read_only=True) as index:
        with pytest.raises(StorageError, match=r"00000002\.seg.*repair"):
            index.backup(tmp_path / "backup")
        assert not (tmp_path / "backup" / "segments" / "00000002.seg").exists()
