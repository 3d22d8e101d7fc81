"""Folders in which something changes, seen through the system's own notices."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.library.folder_watch import changed_folders


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "photos" / "2019").mkdir(parents=True)
    (tmp_path / "photos" / "library").mkdir()
    return tmp_path


@pytest.fixture
def changes(place: Path) -> Iterator[Iterator[list[Path]]]:
    """What changes in the photos, once they are followed."""
    pytest.importorskip("watchfiles", reason="watchfiles is needed: pip install 'setnet[app]'")
    stop = threading.Event()
    photos = place / "photos"
    found = changed_folders(lambda: [photos], photos / "library", quiet=0.1, look=0.2, stop=stop)
    assert next(found) == [photos]  # what changed before counts too
    yield found
    stop.set()


def following(changes: Iterator[list[Path]]) -> list[Path]:
    """Return the next folders in which something changed."""
    return next(filter(None, changes))


def test_new_photos_are_seen_and_other_files_are_not(place: Path, changes: Iterator[list[Path]]) -> None:
    (place / "photos" / "notes.txt").write_text("no photo")
    (place / "photos" / ".hidden.jpg").write_text("hidden")
    (place / "photos" / "library" / "face.jpg").write_text("the library's own")
    (place / "photos" / "2019" / "a.jpg").write_text("photo")
    assert following(changes) == [place / "photos" / "2019"]


def test_a_folder_that_is_moved_in_or_out_is_seen(place: Path, changes: Iterator[list[Path]]) -> None:
    (place / "new").mkdir()
    (place / "new" / "a.jpg").write_text("photo")
    shutil.move(place / "new", place / "photos" / "new")
    assert following(changes) == [place / "photos" / "new"]
    shutil.move(place / "photos" / "new", place / "away")
    assert following(changes) == [place / "photos"]


def test_a_disk_that_comes_back_is_looked_at_again(place: Path, changes: Iterator[list[Path]]) -> None:
    shutil.move(place / "photos", place / "unplugged")
    shutil.move(place / "unplugged", place / "photos")
    assert following(changes) == [place / "photos"]


def test_without_watchfiles_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'setnet\[app\]'"):
        changed_folders(lambda: [tmp_path], tmp_path / "library")
