"""Readers who may not write: they see the latest commit, also when it is in the write-ahead log only."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import catalog as catalog_access
from setnet.engine.catalog import apply_log

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


def locked(root: Path, *, shared_memory: bool) -> None:
    """Take away everybody's permission to write."""
    if not shared_memory:
        (root / "catalog.sqlite-shm").unlink(missing_ok=True)
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user reads")
@pytest.mark.parametrize("shared_memory", [True, False])
def test_another_user_reads_what_is_in_the_log_only(folder: Path, shared_memory: bool) -> None:
    root = crashed(folder / "i")
    locked(root, shared_memory=shared_memory)
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


def test_a_copy_in_memory_is_read_and_follows_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = crashed(tmp_path / "i")
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: pytest.fail("a killed reader would leave it"))
    with monkeypatch.context() as patched:
        refuse(patched)
        with SetIndex.open(root, read_only=True) as reader:
            assert len(reader) == 200
            assert reader.check().ok
            with SetIndex.open(root) as writer:
                add(writer, 200, 50)
                assert len(reader) == 250
                assert len(reader.search(np.eye(8)[:1], k=1000)) == 250
            assert len(reader) == 250, "now that the log is empty again"


@pytest.mark.parametrize("seed", range(5))
def test_a_log_is_applied_as_sqlite_does_however_it_is_cut(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path, whole = tmp_path / "a.db", tmp_path / "b.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE t (x BLOB)")
    for _ in range(30):
        db.execute("INSERT INTO t VALUES (?)", (rng.bytes(int(rng.integers(1, 9000))),))
        if rng.random() < 0.2:
            db.execute("DELETE FROM t WHERE rowid % 3 = 0")
        if rng.random() < 0.1:
            db.execute("VACUUM")
        if rng.random() < 0.1:
            db.execute("PRAGMA wal_checkpoint")
    stored, log = path.read_bytes(), path.with_name("a.db-wal").read_bytes()
    for end in [0, 40, len(log), *rng.integers(0, len(log), 10).tolist()]:
        cut = bytearray(log[:end])
        if cut and rng.random() < 0.5:
            cut[int(rng.integers(0, len(cut)))] ^= 1
        whole.write_bytes(stored)
        whole.with_name("b.db-wal").write_bytes(cut)
        whole.with_name("b.db-shm").unlink(missing_ok=True)
        with closing(sqlite3.connect(whole)) as recovered:
            expected = recovered.execute("SELECT rowid, x FROM t").fetchall()
        data = bytearray(stored)
        apply_log(data, bytes(cut))
        data[18:20] = b"\1\1"
        with closing(sqlite3.connect(":memory:")) as copy:
            copy.deserialize(bytes(data))
            assert copy.execute("SELECT rowid, x FROM t").fetchall() == expected
    db.close()


def test_an_index_at_rest_on_read_only_media_is_read_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SetIndex.create(tmp_path / "i", 8) as index:
        add(index, 0, 100)
    refuse(monkeypatch)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: pytest.fail("nothing to copy"))
    with SetIndex.open(tmp_path / "i", read_only=True) as index:
        assert len(index.search(np.eye(8)[:1], k=1000)) == 100
        assert not (tmp_path / "i" / "catalog.sqlite-wal").exists()
