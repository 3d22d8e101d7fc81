"""Readers who may not write: they see the latest commit, also when it is in the write-ahead log only."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import catalog as catalog_access
from setnet.errors import StorageError

READER = """
import json, os, sys, numpy as np
from setnet import SetIndex
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
with SetIndex.open(sys.argv[1], read_only=True) as index:
    hits = index.search(np.eye(8, dtype=np.float32)[:1], k=1000)
    print(json.dumps([len(index), len(hits), index.check().problems]))
"""


def add(index: SetIndex, first: int, items: int) -> None:
    rows = np.random.default_rng(first).normal(size=(items, 8)).astype(np.float32)
    index.add([f"{first + i}" for i in range(items)], rows, [1] * items)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others can reach: pytest's own are private."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    for path in made.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(made)


def crashed(root: Path) -> Path:
    """Make an index of 200 items, half of them in the write-ahead log only, as a crash leaves it."""
    with SetIndex.create(root.with_name("whole"), 8) as index:
        add(index, 0, 100)
    with SetIndex.open(root.with_name("whole")) as index:
        add(index, 100, 100)
        shutil.copytree(root.with_name("whole"), root)
    assert (root / "catalog.sqlite-wal").stat().st_size
    return root


def locked(root: Path) -> None:
    """Take away everybody's permission to write."""
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user reads")
def test_another_user_reads_what_is_in_the_log_only(folder: Path) -> None:
    root = crashed(folder / "i")
    locked(root)
    before = sorted(path.name for path in root.rglob("*"))
    ended = subprocess.run(
        [sys.executable, "-c", READER, str(root)], capture_output=True, text=True, timeout=60
    )
    assert ended.stdout.strip() == "[200, 200, []]", ended.stdout + ended.stderr
    assert sorted(path.name for path in root.rglob("*")) == before


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no folder be writable, and SQLite unable to read a log beside its database."""
    connect = catalog_access.connect

    def without_shared_memory(path: Path, mode: str) -> Any:
        if mode == "mode=ro":
            return Refusing()
        return connect(path, mode)

    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr(catalog_access, "connect", without_shared_memory)


class Refusing:
    """A connection that cannot open its file."""

    def execute(self, *_: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    def close(self) -> None:
        pass


def test_a_log_that_cannot_be_read_is_an_error_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = crashed(tmp_path / "i")
    with monkeypatch.context() as patched:
        refuse(patched)
        with pytest.raises(StorageError, match=r"write-ahead log.*copy the folder"):
            SetIndex.open(root, read_only=True)
    with SetIndex.open(root, read_only=True) as reader:
        assert len(reader) == 200


def test_a_reader_without_a_log_follows_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SetIndex.create(tmp_path / "i", 8) as index:
        add(index, 0, 100)
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda path, mode: mode != os.W_OK)
        with SetIndex.open(tmp_path / "i", read_only=True) as reader:
            assert len(reader) == 100
            with SetIndex.open(tmp_path / "i") as writer:
                add(writer, 200, 50)
                assert len(reader) == 150
            assert len(reader) == 150, "now that the log is empty again"


def test_an_index_at_rest_on_read_only_media_is_read_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SetIndex.create(tmp_path / "i", 8) as index:
        add(index, 0, 100)
    refuse(monkeypatch)
    with SetIndex.open(tmp_path / "i", read_only=True) as index:
        assert len(index.search(np.eye(8)[:1], k=1000)) == 100
        assert not (tmp_path / "i" / "catalog.sqlite-wal").exists()
