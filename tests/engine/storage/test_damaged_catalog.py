"""Catalogues and commit logs that hold what setnet never wrote: an error of our own, never another."""

import json
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine.catalog import Catalog
from setnet.engine.commit_log import CommitLog
from setnet.errors import SetNetError, StorageError

QUERY = np.eye(4, dtype=np.float32)[:1]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with SetIndex.create(tmp_path / "index", 4) as index:
        index.add(["a", "b"], np.eye(4, dtype=np.float32)[:2], [1, 1], attributes=[{"year": 1}, {"year": 2}])
        index.delete(["b"])
    return tmp_path / "index"


def changed(root: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(root / "catalog.sqlite", isolation_level=None)) as db:
        assert db.execute(sql, values).rowcount > 0


def use_all(root: Path) -> list[Any]:
    """Use an index in every way; return the errors, which are all of setnet's."""
    errors: list[Any] = []

    def attempt(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except SetNetError as error:
            errors.append(error)
            return None

    def use(read_only: bool) -> None:
        with SetIndex.open(root, read_only=read_only) as index:
            attempt(lambda: index.search(QUERY, where={"year": 1}))
            attempt(lambda: (len(index), index.stats(), list(index)))
            report = attempt(index.check)
            if report is not None and not report.ok:
                errors.append(report)
            if not read_only:
                attempt(lambda: index.add(["c"], QUERY, [1]))

    attempt(lambda: use(read_only=True))
    attempt(lambda: use(read_only=False))
    return errors


@pytest.mark.parametrize("key", ["generation", "next_seq", "next_segment", "settings", "settings_crc"])
@pytest.mark.parametrize("value", ["[[]]", '"x"', "-1", "1e999", "[" * 100_000, "null", "", None])
def test_settings_of_another_kind_are_damage(stored: Path, key: str, value: str | None) -> None:
    if value is None:
        changed(stored, "UPDATE meta SET value = x'00' WHERE key = ?", key)
    else:
        changed(stored, "UPDATE meta SET value = ? WHERE key = ?", value, key)
    assert use_all(stored)


@pytest.mark.parametrize(
    "change",
    [
        {"dim": "4"}, {"dim": 0}, {"dim": 10**30}, {"dim": True}, {"precision": "float64"}, {"precision": []},
        {"sets": {"name": "mean", "dim": -1, "bits": 32}}, {"sets": {"name": "mean", "dim": 4, "bits": 7}},
        {"sets": {"name": "mean", "dim": "4", "bits": 32}}, {"logistic": "ab"}, {"logistic": [0, 0]},
    ],
)  # fmt: skip
def test_settings_that_no_index_can_have_are_damage(stored: Path, change: dict[str, Any]) -> None:
    with closing(sqlite3.connect(stored / "catalog.sqlite")) as db:
        (text,) = db.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
    changed(stored, "UPDATE meta SET value = ? WHERE key = 'settings'", json.dumps(json.loads(text) | change))
    with pytest.raises(StorageError, match="settings are damaged"):
        SetIndex.open(stored, read_only=True)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE segments SET items = 'x'",
        "UPDATE segments SET deleted = 9",
        "UPDATE segments SET deleted = 1e999",
        "UPDATE segments SET elements = 1e999",
        "UPDATE segments SET crc = 'x'",
        "UPDATE tombstones SET part = 'x'",
        "UPDATE tombstones SET bits = 'x'",
        "UPDATE items SET id = x'00'",
    ],
)
def test_values_of_another_kind_are_damage(stored: Path, sql: str) -> None:
    changed(stored, sql)
    assert use_all(stored)


def test_no_room_is_made_for_an_impossible_number_of_items(stored: Path) -> None:
    (stored / "commits.log").unlink()  # a writer makes a new one from the catalogue
    changed(stored, "UPDATE segments SET items = 1 << 40")
    with pytest.raises(StorageError, match="of 1099511627776 items"):
        SetIndex.open(stored)


@pytest.mark.parametrize("number", [0, 1])
def test_sequence_numbers_are_never_given_twice(stored: Path, number: int) -> None:
    changed(stored, "UPDATE meta SET value = ? WHERE key = 'next_seq'", number)
    catalog = Catalog(stored / "catalog.sqlite", read_only=False)
    with closing(catalog), pytest.raises(StorageError, match="damaged"), catalog.writing():
        catalog.enter(["c"])


@pytest.mark.parametrize(
    "record",
    [
        "[]", "null", "1", "{}", "not json", "[" * 100_000, '{"generation": "x"}', '{"generation": 1e999}',
        '{"generation": 1, "added": 5}', '{"generation": 1, "added": ["1"]}',
        '{"generation": 1, "dropped": [[]]}', '{"generation": 1, "deleted": 7}',
        '{"generation": 1, "deleted": {"x": []}}',
        '{"generation": 1, "deleted": {"1": [-1]}}', '{"generation": 1, "settings": "x"}',
        '{"generation": 1, "added": [1%s]}' % ("0" * 5000),
    ],
)  # fmt: skip
def test_records_that_no_writer_makes_are_damage_of_the_log(stored: Path, record: str) -> None:
    log = stored / "commits.log"
    log.write_bytes(log.read_bytes() + b"%08x %s\n" % (zlib.crc32(record.encode()), record.encode()))
    state = CommitLog(stored).read()
    assert state is not None
    assert "damaged at line" in str(state.damage)
    with SetIndex.open(stored, read_only=True) as index:
        assert not index.check().ok
    assert SetIndex.repair(stored).items == 1
