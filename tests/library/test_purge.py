from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError, NotAnIndexError
from setnet.library import Example, Library, LibraryPhoto, purge
from setnet.library.person_matcher import NamedPeople
from setnet.library.photo_writer import delete_photos


def anywhere(folder: Path, data: bytes) -> bool:
    return any(data in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_forgotten_photos_leave_no_trace_in_any_file(library: Library, photos: Path) -> None:
    ids = [photo.id for photo in library.photos.all_photos() if "2016" in str(photo.path)]
    secrets = [library.photos.descriptors(i)[0].tobytes() for i in ids]
    for i in ids:
        library.photos.thumbnail(i)
    thumbnails = sum(1 for _ in (library.path / "thumbnails").glob("*/*"))
    assert all(anywhere(library.path, secret) for secret in secrets)
    assert library.forget([photos / "2016"]) == 2
    assert not any(anywhere(library.path, secret) for secret in secrets)
    assert not anywhere(library.path, b"2016/pair.jpg")
    assert sum(1 for _ in (library.path / "thumbnails").glob("*/*")) == thumbnails - 2
    assert library.photos.counts().photos == 3
    assert library.check() == []
    assert (photos / "2016" / "pair.jpg").is_file()
    with pytest.raises(InvalidInputError, match="knows no photo"):
        library.forget([photos / "2016"])


def test_what_a_killed_command_was_forgetting_leaves_no_trace_after_the_next_run(
    library: Library, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = next(photo for photo in library.photos.all_photos() if photo.path.stem == "pair")
    secret = library.photos.descriptors(pair.id)[0]
    library.people.add("Anna", [Example(secret, str(pair.path))])
    library.photos.thumbnail(pair.id)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for step in ("setnet.library.photo_writer.delete_stale", "setnet.engine.SetIndex.compact"):
        with monkeypatch.context() as patch:
            patch.setattr(step, killed)
            with pytest.raises(KeyboardInterrupt):
                library.forget([pair.path])
    assert library.people.get("Anna").examples == 0
    library.index([photos / "2019"], workers=0)
    library.close()  # SQLite's log goes with the last connection
    assert not anywhere(library.path, secret.tobytes())
    assert not anywhere(library.path, b"pair.jpg")
    assert not list((library.path / "thumbnails").glob(f"*/{pair.id}-*"))


def test_examples_of_people_are_forgotten_with_their_photo(library: Library, photos: Path) -> None:
    pair = next(p for p in library.photos.all_photos() if p.path.stem == "pair")
    others = [p for p in library.photos.all_photos() if p.faces and p.path.parent != pair.path.parent]
    secret = library.photos.descriptors(pair.id)[0]
    library.people.add("Anna", [Example(secret, str(pair.path), picture=b"a picture of Anna")])
    kept = Example(library.photos.descriptors(others[0].id)[0], str(others[0].path))
    library.people.add("Ben", [Example(secret, f"{photos}/x/../2016/pair.jpg"), kept])
    library.forget([photos / "2016"])
    for trace in (secret.tobytes(), b"a picture of Anna", b"2016/pair.jpg", b"pair.jpg"):
        assert not anywhere(library.path, trace)
    assert {p.name: p.examples for p in library.people} == {"Anna": 0, "Ben": 1}
    assert library.people.photo_counts()[library.people.get("Anna").id] == 0
    assert NamedPeople.of(library).names == ("Ben",)
    with pytest.raises(InvalidInputError, match="no example face left"):
        library.search(["Anna"])


def test_examples_follow_a_photo_that_moved(library: Library, photos: Path) -> None:
    pair = next(p for p in library.photos.all_photos() if p.path.stem == "pair")
    library.people.add("Anna", [Example(library.photos.descriptors(pair.id)[0], str(pair.path))])
    pair.path.rename(photos / "elsewhere.jpg")
    assert library.index([photos], workers=0).moved == 1
    library.forget([photos / "elsewhere.jpg"])
    assert library.people.get("Anna").examples == 0


def test_a_photo_that_is_only_an_example_can_be_forgotten(library: Library) -> None:
    library.people.add("Anna", [Example(np.ones(128, np.float32), "/elsewhere/anna.jpg")])
    assert library.forget(["/elsewhere/anna.jpg"]) == 0
    assert not anywhere(library.path, b"/elsewhere")


def test_forgetting_empties_the_quarantine(library: Library, photos: Path) -> None:
    aside = library.path / "index" / "quarantine"
    aside.mkdir()
    (aside / "00000099.seg").write_bytes(b"an old descriptor")
    library.forget([photos / "2016"])
    assert not anywhere(library.path, b"an old descriptor")


def test_what_a_killed_run_left_of_a_photo_can_be_forgotten(library: Library, photos: Path) -> None:
    with pytest.raises(InvalidInputError, match="knows no photo"):
        library.forget(["/elsewhere/new.jpg"])
    (library.path / "index" / "segments" / "00000099.seg").write_bytes(b"a descriptor of new.jpg")
    assert library.forget(["/elsewhere/new.jpg"]) == 0
    assert not anywhere(library.path, b"a descriptor of new.jpg")


def test_a_forgotten_folder_takes_the_folders_inside_it_along(library: Library, photos: Path) -> None:
    library.index([photos.parent], workers=0)
    assert library.folders == [photos.parent, photos]
    assert library.forget([photos.parent]) == 6  # the one that could not be read too
    assert library.folders == []
    assert not anywhere(library.path, bytes(photos))


def test_a_library_without_its_index_says_so_and_can_be_forgotten(library: Library, photos: Path) -> None:
    library.close()
    shutil.rmtree(library.path / "index")
    with Library.open(library.path) as damaged:
        with pytest.raises(NotAnIndexError, match="lost its index"):
            damaged.status()
        assert damaged.forget_everything() == 5
    assert not library.path.exists()


def test_forgetting_everything_deletes_the_library_and_no_photo(library: Library, photos: Path) -> None:
    (library.path / "a note of mine.txt").write_text("stays")
    assert library.forget_everything() == 5
    assert [p.name for p in library.path.iterdir()] == ["a note of mine.txt"]
    assert sum(1 for _ in photos.rglob("*.jpg")) == 6


def test_a_thumbnail_made_while_its_photo_is_forgotten_is_not_kept(library: Library, photos: Path) -> None:
    photo = next(p for p in library.photos.all_photos() if p.path.stem == "pair")

    def draw(photo: LibraryPhoto) -> bytes:
        library.forget([photo.path])
        return b"a picture"

    assert library.photos.picture(photo, "160", draw) == b"a picture"
    assert not anywhere(library.path, b"a picture")


def test_a_thumbnail_asked_for_while_photos_are_being_forgotten_goes_with_them(
    library: Library, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = next(p for p in library.photos.all_photos() if p.path.stem == "pair")

    def asked_for_meanwhile(db: sqlite3.Connection, ids: list[int]) -> None:
        library.photos.thumbnail(photo.id, 160)
        delete_photos(db, ids)

    monkeypatch.setattr(purge, "delete_photos", asked_for_meanwhile)
    library.forget([photo.path])
    assert list((library.path / "thumbnails").glob(f"*/{photo.id}-*")) == []


KILLED = """
import os, sys
from setnet.library import Library
from setnet.library import backup as backups, repair
step, path, backup = sys.argv[1:]
repair._Repair._is_sound = lambda self: False
module, name = {"index": ("setnet.engine.SetIndex", "backup"), "complete": (None, "complete")}[step]
if module is None:
    repair.complete_staging = backups.complete_staging = lambda library: os._exit(9)
else:
    from setnet.engine import SetIndex
    copy = SetIndex.backup
    SetIndex.backup = lambda *a, **o: (copy(*a, **o), os._exit(9))
if backup == "-":
    Library.repair(path)
else:
    Library.restore(backup, path, replace=True)
"""


@pytest.mark.parametrize(
    ("command", "step"), [("repair", "complete"), ("restore", "complete"), ("restore", "index")]
)
@pytest.mark.parametrize("opened", ["before", "after"])
def test_what_a_killed_repair_or_restore_staged_is_gone_after_forgetting(
    library: Library, photos: Path, tmp_path: Path, command: str, step: str, opened: str
) -> None:
    pair = next(photo for photo in library.photos.all_photos() if photo.path.stem == "pair")
    secret = library.photos.descriptors(pair.id)[0]
    library.people.add("Wilhelmina", [Example(secret, str(pair.path))])
    backup = tmp_path / "backup"
    library.backup(backup)
    library.close()
    if opened == "before":
        library = Library.open(library.path)
    source = str(backup) if command == "restore" else "-"
    command_line = [sys.executable, "-c", KILLED, step, str(library.path), source]
    assert subprocess.run(command_line, timeout=120).returncode == 9
    assert anywhere(library.path / "staging", b"pair.jpg")
    if opened == "after":
        library = Library.open(library.path)
        assert not (library.path / "staging").exists()
    library.people.remove("Wilhelmina", for_good=True)
    assert not anywhere(library.path, b"Wilhelmina")
    library.forget([pair.path])
    library.close()
    assert not anywhere(library.path, secret.tobytes())
    assert not anywhere(library.path, b"pair.jpg")
