"""Transactions that an interrupt left behind, and what is said of a full disk."""

from __future__ import annotations

import gc
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from setnet.durable import check_disk_full, own_errors, transaction
from setnet.errors import StorageError


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    made = sqlite3.connect(tmp_path / "db", isolation_level=None)
    made.execute("CREATE TABLE t (x)")
    return made


def test_a_transaction_whose_end_never_ran_is_rolled_back_by_the_next(db: sqlite3.Connection) -> None:
    left = transaction(db)
    left.__enter__()  # an interrupt at the first instruction of __exit__: no other ran
    db.execute("INSERT INTO t VALUES (1)")
    with transaction(db):
        db.execute("INSERT INTO t VALUES (2)")
    assert db.execute("SELECT x FROM t").fetchall() == [(2,)]


def test_a_transaction_collected_late_ends_no_other(db: sqlite3.Connection) -> None:
    left = transaction(db)
    left.__enter__()
    with transaction(db):
        db.execute("INSERT INTO t VALUES (2)")
        del left  # as a collection of garbage does at any moment
        gc.collect()
        db.execute("INSERT INTO t VALUES (3)")
    assert db.execute("SELECT x FROM t").fetchall() == [(2,), (3,)]


def test_a_full_disk_is_not_called_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = sqlite3.OperationalError("disk I/O error")  # what SQLite says when it cannot map its log
    check_disk_full(tmp_path / "db", failed)
    check_disk_full(tmp_path / "gone" / "db", failed)
    usage = shutil.disk_usage(tmp_path)._replace(free=4096)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(StorageError, match=r"the disk of .*db is full .*make room"):
        check_disk_full(tmp_path / "db", failed)
    check_disk_full(tmp_path / "db", sqlite3.DatabaseError("malformed"))  # damage, whatever room there is


def test_what_sqlite_calls_full_is_full(db: sqlite3.Connection, tmp_path: Path) -> None:
    db.execute("PRAGMA max_page_count = 2")
    with pytest.raises(sqlite3.OperationalError) as failed:
        db.execute("INSERT INTO t VALUES (zeroblob(100000))")
    with pytest.raises(StorageError, match=r"the disk of .*db is full .*make room"):
        check_disk_full(tmp_path / "db", failed.value)


def test_an_interrupt_within_a_condition_stays_an_interrupt() -> None:
    class Waiting:
        path = Path("/somewhere")

        @own_errors
        def wait(self) -> None:
            try:
                raise KeyboardInterrupt
            finally:  # what `Condition.__exit__` does when the interrupt kept it from taking its lock again
                threading.Lock().release()

    with pytest.raises(KeyboardInterrupt):
        Waiting().wait()
