"""Ctrl-C and failing commits at any moment of a change lose nothing that was stored before."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import writer as writers
from setnet.engine.commit_log import CommitLog
from setnet.errors import LockedError, OutcomeUnknownError, StorageError

ROWS = np.eye(4, dtype=np.float32)


class FailingDatabase:
    """A connection that raises once, after its n-th statement was carried out."""

    def __init__(self, db: sqlite3.Connection, after: int, error: Callable[[], BaseException]) -> None:
        self._db, self._left, self._error = db, after, error

    def execute(self, *given: Any) -> Any:
        return self._then_fail(self._db.execute(*given))

    def executemany(self, *given: Any) -> Any:
        return self._then_fail(self._db.executemany(*given))

    def _then_fail(self, result: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            del result  # an unread answer would hold a lock
            raise self._error()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def small_index(path: Path) -> None:
    with SetIndex.create(path, 4) as index:
        for name in "abc":
            index.add([name], ROWS[:2], [2], attributes=[{"n": 1}])


CHANGES: dict[str, Callable[[SetIndex], object]] = {
    "add": lambda index: index.add(["new"], ROWS[2:], [2]),
    "upsert": lambda index: index.add(["a"], ROWS[2:], [2]),
    "update": lambda index: index.update({"b": {"n": 2}}),
    "delete": lambda index: index.delete(["c"]),
    "compact": lambda index: index.compact(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, partial(sqlite3.OperationalError, "disk I/O error")])
def test_a_failure_after_any_statement_of_a_change_loses_no_item(
    tmp_path: Path, change: str, error: Callable[[], BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "MERGE", 3)
    for after in range(1, 60):
        path = tmp_path / str(after)
        small_index(path)
        index = SetIndex.open(path)
        assert index._writer
        catalog: Any = index._writer.catalog
        db = catalog.db = FailingDatabase(catalog.db, after, error)
        try:
            CHANGES[change](index)
            failed = False
        except (KeyboardInterrupt, StorageError):
            failed = True
        catalog.db = db._db
        index.close()
        with SetIndex.open(path) as index:
            assert index.check().problems == []
            assert {"a", "b"} <= {item.id for item in index}
            assert len(index.search(ROWS[:1], k=9)) == len(index)
            CHANGES["add"](index)
            index.compact()
            assert not list((path / "quarantine").glob("*"))
        if not failed:
            return
    pytest.fail("the change has more statements than were tried")


@pytest.mark.parametrize("change", CHANGES)
def test_an_interrupt_before_the_commit_log_is_written_leaves_no_gap_in_it(
    tmp_path: Path, change: str
) -> None:
    for after in range(1, 60):
        path = tmp_path / str(after)
        small_index(path)
        with SetIndex.open(path) as index:
            assert index._writer
            catalog: Any = index._writer.catalog
            db = catalog.db = FailingDatabase(catalog.db, after, KeyboardInterrupt)
            try:
                CHANGES[change](index)
                failed = False
            except KeyboardInterrupt:
                failed = True
            catalog.db = db._db
            index.add(["next"], ROWS[:1], [1])  # the writer goes on
            logged, stored = CommitLog(path).read(), catalog.committed()
            assert logged is not None
            assert (logged.segments, logged.deleted) == (stored.segments, stored.deleted), after
        if not failed:
            return
    pytest.fail("the change has more statements than were tried")


def test_files_that_a_damaged_catalogue_does_not_name_are_kept(tmp_path: Path) -> None:
    small_index(tmp_path / "i")
    with sqlite3.connect(tmp_path / "i" / "catalog.sqlite") as db:
        db.execute("DELETE FROM segments WHERE number > 1")
    before = sorted((tmp_path / "i" / "segments").iterdir())
    with pytest.raises(StorageError, match="damaged"):
        SetIndex.open(tmp_path / "i")
    assert sorted((tmp_path / "i" / "segments").iterdir()) == before


def test_a_commit_that_comes_back_after_an_error_finds_its_segment(tmp_path: Path) -> None:
    """SQLite may recover a transaction from its log although its commit reported an error."""
    small_index(tmp_path / "i")
    index = SetIndex.open(tmp_path / "i")
    (tmp_path / "i" / "segments" / "00000004.seg").write_bytes(b"of a change whose commit failed")
    index.add(["new"], ROWS[2:], [2])
    assert (tmp_path / "i" / "segments" / "00000004.seg").read_bytes().startswith(b"of a change")
    index.close()
    with SetIndex.open(tmp_path / "i") as index:  # moved aside, not deleted, until a compaction
        assert (tmp_path / "i" / "quarantine" / "00000004.seg").exists()
        assert index.check().ok
        index.compact()
    assert not list((tmp_path / "i" / "quarantine").iterdir())


def in_a_fork(work: Callable[[], str]) -> str:
    """Return what the function says in a forked process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, work().encode())
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode()


def test_a_forked_process_may_search_but_not_write(tmp_path: Path) -> None:
    small_index(tmp_path / "i")
    with SetIndex.open(tmp_path / "i") as index:
        before = index.search(ROWS[:1], k=9)

        def add() -> str:
            index.add(["fork"], ROWS[:1], [1])
            return "added"

        assert "forked" in in_a_fork(add)

        def search_and_close() -> str:
            found = len(index.search(ROWS[:1], k=9))
            index.close()
            return str(found)

        assert in_a_fork(search_and_close) == "3"
        index.add(["parent"], ROWS[:1], [1])
        assert len(index) == 4
        assert index.check().ok
    with SetIndex.open(tmp_path / "i") as index:
        assert {hit.id for hit in index.search(ROWS[:1], k=9)} == {hit.id for hit in before} | {"parent"}


def test_a_deleted_lock_file_does_not_admit_a_second_writer(tmp_path: Path) -> None:
    small_index(tmp_path / "i")
    first = SetIndex.open(tmp_path / "i")
    (tmp_path / "i" / "lock").unlink()
    second = SetIndex.open(tmp_path / "i")
    with pytest.raises(LockedError, match="deleted or replaced"):
        first.add(["first"], ROWS[:1], [1])
    second.add(["second"], ROWS[:1], [1])
    first.close()
    second.close()
    with SetIndex.open(tmp_path / "i") as index:
        assert index.check().ok
        assert {item.id for item in index} == {"a", "b", "c", "second"}


def test_a_change_that_is_stored_but_not_in_the_log_is_of_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_index(tmp_path / "i")
    with SetIndex.open(tmp_path / "i") as index:

        def fails(*_: object) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr("setnet.engine.commit_log.append_durably", fails)
            with pytest.raises(OutcomeUnknownError, match=r"commits\.log.*committed"):
                index.add(["new"], ROWS[2:], [2])
        index.add(["other"], ROWS[2:], [2])
    with SetIndex.open(tmp_path / "i") as index:
        assert index.check().ok
        assert {item.id for item in index} == {"a", "b", "c", "new", "other"}


def test_an_add_is_stored_when_the_merge_after_it_cannot_delete_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writers, "MERGE", 3)
    small_index(tmp_path / "i")

    unlink = Path.unlink

    def fails(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".seg":
            raise OSError(5, "Input/output error", str(path))
        unlink(path, missing_ok)

    with SetIndex.open(tmp_path / "i") as index:
        for name in ("x", "y", "z"):
            with monkeypatch.context() as patch:
                patch.setattr(Path, "unlink", fails)
                index.add([name], ROWS[2:], [2])
        assert "not merged" in caplog.text
        assert len(index) == 6
    with SetIndex.open(tmp_path / "i") as index:
        assert index.check().ok
        assert len(index) == 6
