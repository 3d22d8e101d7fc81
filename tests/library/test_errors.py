"""Nothing but errors of setnet comes out of a library."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from setnet.errors import SetNetError, StorageError
from setnet.library import Library


@pytest.mark.parametrize(
    "call",
    [
        lambda library: library.photos.get("9" * 30),
        lambda library: library.search(["\ud800"]),
        lambda library: library.search(["a\0b"]),
        lambda library: library.people.add_photos("Anna", ["\ud800.jpg"]),
        lambda library: library.index(["\ud800"]),
        lambda library: library.forget(["\ud800"]),
        lambda library: library.people.rename("\ud800", "Anna"),
        lambda library: Library.open("~nobody-of-this-name/library"),
        lambda library: Library.create("a\0b"),
        lambda library: Library.create("\ud800"),
    ],
)
def test_odd_values_are_answered_with_our_errors(shared: Library, call: Callable[[Library], object]) -> None:
    with pytest.raises(SetNetError):
        call(shared)


@pytest.mark.parametrize(
    ("key", "value"), [("dim", "1x8"), ("dim", "9" * 5000), ("settings", "[]"), ("settings", "{")]
)
def test_damaged_settings_are_answered_with_our_errors(tmp_path: Path, key: str, value: str) -> None:
    Library.create(tmp_path / "library").close()
    with sqlite3.connect(tmp_path / "library" / "library.db") as db:
        db.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
    with pytest.raises(SetNetError), Library.open(tmp_path / "library") as library:
        library.settings  # noqa: B018


def test_errors_of_the_system_are_ours(shared: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("setnet.library.library.bytes_in", failing)
    with pytest.raises(StorageError, match="Input/output error"):
        shared.status()


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StorageError):
        Library.create(tmp_path / "file" / "library")
