"""Backups of a library are of one moment, incremental, and come back as they were."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import InvalidInputError, LockedError, StorageError
from setnet.library import Example, Library, StoredFace
from setnet.library.backup import stage_new_state
from setnet.library.photo_reader import PhotoResult
from setnet.library.photo_writer import PhotoWriter

FACE = StoredFace(0, 1.0, 2.0, 3.0, 4.0, 0.9, np.zeros((5, 2), "<f4").tobytes(), "{}")


def store(library: Library, *names: str) -> None:
    with library._writing() as index:
        PhotoWriter(library._database, index).store([result(name) for name in names])


def result(name: str) -> PhotoResult:
    vector = np.random.default_rng(list(name.encode())).normal(size=(1, 128)).astype(np.float32)
    return PhotoResult(
        f"/p/{name}.jpg".encode(), 1, 1, name.encode(), faces=(FACE,), descriptors=vector, width=9, height=9
    )


def contents(path: Path) -> dict[str, Any]:
    """Return what a library knows; raise when a check finds damage."""
    with Library.open(path) as library:
        assert library.check() == []
        photos = {
            p.path.stem: library.photos.descriptors(p.id).tobytes() for p in library.photos.all_photos()
        }
        return {"photos": photos, "people": [person.name for person in library.people]}


def test_a_backup_is_a_library_and_a_second_one_copies_what_is_new(stored: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    with Library.open(stored) as library:
        first = library.backup(backup)
        assert (first.photos, first.people, first.kept_segments) == (4, 1, 0)
        assert contents(backup) == contents(stored)
        store(library, "new")
        library.people.rename("Nobody", "Somebody")
        second = library.backup(backup)
        assert (second.photos, second.copied_segments, second.kept_segments) == (5, 1, first.copied_segments)
        assert contents(backup) == contents(stored)
        secret = library.photos.descriptors("1").tobytes()
        library.forget(["/synthetic/photos/0.jpg"])
        library.backup(backup)
    assert contents(backup) == contents(stored)
    everything = b"".join(path.read_bytes() for path in backup.rglob("*") if path.is_file())
    assert secret not in everything, "forgotten means gone, also from the next backup"
    with Library.open(backup) as copy:
        copy.people.add("Eve", [Example(np.ones(128, np.float32))])
        assert copy.check() == []


def test_a_backup_is_for_its_owner_alone(stored: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    backup.mkdir(mode=0o755)
    with Library.open(stored) as library:
        library.backup(backup)
    paths = [backup, *backup.rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_dir()} == {0o700}


def test_a_backup_beside_a_run_is_of_one_moment(stored: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    errors: list[BaseException] = []

    def write() -> None:
        try:
            with Library.open(stored) as library, library._writing() as index:
                writer = PhotoWriter(library._database, index)
                for turn in range(10_000):
                    writer.store([result(f"{turn} {n}") for n in range(3)])
                    if turn % 3 == 2:
                        gone = library.photos.same_content(f"{turn} 0".encode())
                        writer.remove([i for ids, _ in gone for i in ids])
                    if stop.wait(0.05):
                        return
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with Library.open(stored) as library:
            for _ in range(5):
                library.backup(tmp_path / "backup")
                contents(tmp_path / "backup")
    finally:
        stop.set()
        thread.join()
    assert errors == []


@pytest.mark.parametrize("place", ["library", "library/inside", "other"])
def test_a_backup_goes_nowhere_else(stored: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with Library.open(stored) as library, pytest.raises(InvalidInputError, match="choose another folder"):
        library.backup(tmp_path / place)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.txt"]
    assert not (stored / "inside").exists()
    assert len(contents(stored)["photos"]) == 4


def test_two_backups_to_one_folder_at_once_are_refused(stored: Path, tmp_path: Path) -> None:
    with Library.open(stored) as library:
        library.backup(tmp_path / "backup")
        with stage_new_state(tmp_path / "backup"), pytest.raises(LockedError, match="backed up"):
            library.backup(tmp_path / "backup")


def test_a_backup_is_restored_to_a_new_folder_or_over_a_library(stored: Path, tmp_path: Path) -> None:
    backup, place = tmp_path / "backup", tmp_path / "restored"
    with Library.open(stored) as library:
        library.backup(backup)
    assert Library.restore(backup, place).photos == 4
    assert contents(place) == contents(backup)
    with Library.open(place) as library:
        store(library, "later")
        (place / "thumbnails").mkdir()
    with pytest.raises(InvalidInputError, match="--replace"):
        Library.restore(backup, place)
    with Library.open(place) as library, library._writing(), pytest.raises(LockedError):
        Library.restore(backup, place, replace=True)
    assert "later" in contents(place)["photos"]
    Library.restore(backup, place, replace=True)
    assert contents(place) == contents(backup)
    assert {path.name for path in place.iterdir()} == {
        "index",
        "library.journal",
        "library.db",
        "library.lock",
    }


def test_a_restore_touches_no_other_folder(stored: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match="not empty"):
        Library.restore(stored, tmp_path / "other", replace=True)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.txt"]


def test_a_damaged_backup_is_not_restored(stored: Path, tmp_path: Path) -> None:
    with Library.open(stored) as library:
        library.backup(tmp_path / "backup")
    with sqlite3.connect(tmp_path / "backup" / "library.db") as db:
        db.execute("UPDATE people SET name = 'Eve'")
    with pytest.raises(StorageError, match="damaged"):
        Library.restore(tmp_path / "backup", stored, replace=True)
    assert contents(stored)["people"] == ["Nobody"]


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_switch_that_was_cut_short_is_finished_by_whoever_opens(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    backup = tmp_path / "backup"
    with Library.open(stored) as library:
        library.backup(backup)
        store(library, "new")

        def killed(path: Path) -> None:
            if (path / "staging" / "library.db").exists():
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("setnet.library.backup.put_in_place", killed)
            with pytest.raises(KeyboardInterrupt):
                library.backup(backup)
    (backup / "quarantine").mkdir()
    if moved > 0:
        (backup / "index").rename(backup / "quarantine" / "index")
    if moved > 1:
        (backup / "staging" / "index").rename(backup / "index")
    shutil.copytree(backup, tmp_path / "killed")
    assert contents(tmp_path / "killed") == contents(stored)
    with Library.open(stored) as library:
        library.backup(backup)
    assert contents(backup) == contents(stored)
