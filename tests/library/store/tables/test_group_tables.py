"""Libraries of version 5, without groups: brought up to date in one transaction, or read as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from old_library import rows, unpacked, version_of
from setnet.errors import StorageError
from setnet.library import Library
from setnet.library.store.tables import schema

NEW = ("face_groups", "group_members", "shots", "shot_faces", "photo_facts")


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """A library of version 5 of the database."""
    library: Path = unpacked(5, tmp_path)
    return library


def test_everything_is_kept_and_its_faces_can_be_grouped(last: Path) -> None:
    before = rows(last, without=NEW)
    assert len(before["verdicts"]) == 2
    with Library.open(last) as library:
        assert library.check() == []
        assert library.groups.page() == []
        assert library.groups.ungrouped_faces == 6
    assert rows(last, without=NEW) == before
    assert version_of(last) == len(schema.MIGRATIONS)
    with Library.open(last) as library:
        library.discover()
        assert sum(group.faces for group in library.groups.page()) == 6
        names = {group.name for group in library.groups.page()}
        assert {"Nobody", "Zoë"} <= names  # their examples are faces of these photos, or look the same
        assert library.check() == []


def test_one_that_cannot_be_written_has_no_groups(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = {path: path.read_bytes() for path in last.rglob("*") if path.is_file()}
    with Library.open(last) as library:
        assert library.check() == []
        assert library.groups.page() == []
        assert library.groups.grouped_at is None
        assert "g1" not in library.groups
        assert library.suggestions() == []
        assert library.people.get("Zoe B.").note == "from the choir"
        assert library.photos_with("Nobody").total == 2
        with pytest.raises(StorageError, match="read-only"):
            library.discover()
    assert {path: path.read_bytes() for path in last.rglob("*") if path.is_file()} == before
