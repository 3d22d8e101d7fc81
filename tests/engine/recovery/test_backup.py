"""Backups are whole, consistent and incremental, and come back as they were."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.errors import InvalidInputError, StorageError

DIM = 8


def rows(seed: int, count: int = 2) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)


def held(path: Path) -> dict[str, bytes]:
    with SetIndex.open(path, read_only=True) as index:
        assert index.check().problems == []
        return {item.id: index.elements(item.id).tobytes() for item in index}


def test_a_second_backup_copies_only_what_is_new(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", DIM) as index:
        for n in range(3):
            index.add([f"i{n}"], rows(n), [2])
        first = index.backup(tmp_path / "b")
        assert (first.items, first.copied_segments, first.kept_segments) == (3, 3, 0)
        index.add(["i3"], rows(3), [2])
        index.delete(["i0"])
        second = index.backup(tmp_path / "b")
        assert (second.items, second.copied_segments, second.kept_segments) == (3, 1, 3)
        assert held(tmp_path / "b") == held(tmp_path / "i")
        index.compact()
        index.backup(tmp_path / "b")
    assert held(tmp_path / "b") == held(tmp_path / "i")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file())
    assert rows(0).tobytes() not in everything, "deleted means gone, also from the backup"


def test_a_backup_beside_a_writer_is_one_state(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", DIM) as index:
        index.add(["x0", "y0"], rows(0), [1, 1])
        stop = threading.Event()

        def write() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                index.add([f"x{n}", f"y{n}"], rows(n), [1, 1])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            with SetIndex.open(tmp_path / "i", read_only=True) as reader:
                for n in range(10):
                    reader.backup(tmp_path / f"b{n}")
        finally:
            stop.set()
            writer.join()
    for n in range(10):
        names = set(held(tmp_path / f"b{n}"))
        assert {name[1:] for name in names if name[0] == "x"} == {
            name[1:] for name in names if name[0] == "y"
        }


def test_a_backup_is_restored_as_it_was(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", DIM) as index:
        index.add(["a", "b"], rows(1), [1, 1], attributes=[{"n": 1}, None])
        index.delete(["b"])
        index.backup(tmp_path / "b")
    with SetIndex.open(tmp_path / "b", read_only=True) as backup:
        backup.backup(tmp_path / "r")
    assert held(tmp_path / "r") == held(tmp_path / "i")
    with SetIndex.open(tmp_path / "r") as index:
        index.add(["c"], rows(2), [2])
        assert len(index) == 2


def test_bad_folders_and_damaged_backups_are_refused(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", DIM) as index:
        index.add(["a"], rows(1), [2])
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "anna.jpg").write_bytes(b"x")
        with pytest.raises(InvalidInputError, match="neither empty nor a backup"):
            index.backup(tmp_path / "photos")
        with pytest.raises(InvalidInputError, match="neither empty nor a backup"):
            index.backup(tmp_path / "i")
        index.backup(tmp_path / "b")
    victim = next((tmp_path / "b" / "segments").iterdir())
    data = bytearray(victim.read_bytes())
    data[70] ^= 1
    victim.write_bytes(data)
    with (
        SetIndex.open(tmp_path / "b", read_only=True) as backup,
        pytest.raises(StorageError, match="damaged"),
    ):
        backup.backup(tmp_path / "r")
    with SetIndex.open(tmp_path / "i") as index:
        assert index.backup(tmp_path / "b").copied_segments == 1, "a damaged copy is made again"
