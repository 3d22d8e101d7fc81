"""Upgrades of the database that are killed: whatever the version, the library stays as it was."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from old_library import unpacked
from setnet.library import Library
from setnet.library.store.tables import schema


@pytest.mark.parametrize("version", [4, 5, 6, 7])
def test_an_upgrade_that_is_killed_at_its_end_leaves_the_library_as_it_was(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = unpacked(version, tmp_path)
    before, apply = (last / "library.db").read_bytes(), schema.apply

    def killed(db: sqlite3.Connection, version: int, until: int) -> None:
        apply(db, version, until)
        os._exit(9)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(schema, "apply", killed)
        Library.open(last)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (last / "library.db").read_bytes() == before
    with Library.open(last) as library:
        assert library.check() == []
