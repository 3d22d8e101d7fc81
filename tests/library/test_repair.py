"""Whatever is damaged, a repair saves the rest, says what is lost and brings nothing forgotten back."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError
from setnet.library import Example, Library, LibraryRepair, repair
from setnet.library.database import Database

PHOTO = "/synthetic/photos/{}.jpg"


@pytest.fixture
def path(stored: Path) -> Path:
    """A library of photos 0, 1 and 2 and of one person; photo 3 and two people were forgotten."""
    with Library.open(stored) as library:
        for photo, name in ((3, "Eve"), (0, "Anna")):
            example = Example(unit(photo), PHOTO.format(photo), picture=b"a picture")
            library.people.add(name, [example, Example(unit(9), "/elsewhere.jpg")])
        library.people.remove("Eve", "Nobody", for_good=True)
        library.forget([PHOTO.format(3)])
    return stored


def unit(seed: int) -> Any:
    vector = np.random.default_rng(seed).normal(size=128).astype(np.float32)
    return vector / np.linalg.norm(vector)


def contents(path: Path) -> dict[str, Any]:
    """Return what a library knows; raise when a check finds damage."""
    with Library.open(path) as library:
        assert library.check() == []
        return {
            "photos": {
                p.path.stem: library.photos.descriptors(p.id).tobytes() for p in library.photos.all_photos()
            },
            "people": {p.name: [e.source for e in library.people.examples(p.name)] for p in library.people},
            "folders": list(map(str, library.folders)),
        }


def alter(path: Path, statement: str) -> None:
    """Change rows behind the back of checksums and journal."""
    with sqlite3.connect(path / "library.db") as db:
        db.execute(statement)
    db.close()


def test_a_sound_library_is_left_as_it_is(path: Path) -> None:
    before = contents(path)
    assert Library.repair(path) == LibraryRepair(photos=3, people=1, to_read=0, lost=(), folders=())
    assert contents(path) == before
    assert not (path / "quarantine").exists()


def test_a_lost_database_is_made_again_from_its_journal(path: Path) -> None:
    before = contents(path)
    (path / "library.db").unlink()
    with pytest.raises(NotAnIndexError, match="setnet repair"):
        Library.open(path)
    with pytest.raises(InvalidInputError, match="setnet repair"):
        Library.create(path)
    done = Library.repair(path)
    assert (done.photos, done.people, done.to_read) == (0, 1, 3)
    assert done.folders == ("/synthetic/photos/",)
    assert ["photos" in text for text in done.lost] == [True]
    assert contents(path) == {**before, "photos": {}}


def test_a_lost_database_with_its_journal_comes_from_a_copy(path: Path) -> None:
    with Library.open(path) as library:
        library._database.copy_daily()
        before = contents(path)
        library.people.add("Carl", [Example(unit(5))])
    for name in ("library.db", "library.journal"):
        (path / name).unlink()
    done = Library.repair(path)
    assert (done.photos, done.people, done.to_read) == (3, 1, 0)
    assert any("people" in text for text in done.lost)
    assert contents(path) == before


def test_three_copies_are_kept_and_one_a_day_is_made(path: Path) -> None:
    with Library.open(path) as library:
        for number in range(5):
            library._database.copy_daily()
            library._database.copy_daily()
            for copy in (path / "copies").iterdir():
                os.utime(copy, (0, 0))
            assert len(list((path / "copies").iterdir())) == min(number + 1, 3)
        library.people.add("Wilhelmina", [Example(unit(5))])
        library._database.copy_daily()
        library.people.remove("Wilhelmina", for_good=True)
    found = [file.name for file in path.rglob("*") if file.is_file() and b"Wilhelmina" in file.read_bytes()]
    assert found == []


@pytest.mark.parametrize("size", [0, 1, 99, 4096, 20480, 0.45, 0.5, 0.55, 0.7, 0.9])
def test_a_database_cut_short_is_repaired(path: Path, size: float) -> None:
    before = contents(path)
    whole = (path / "library.db").stat().st_size
    os.truncate(path / "library.db", int(size if isinstance(size, int) else size * whole))
    done = Library.repair(path)
    after = contents(path)
    assert done.lost or after == before  # what nothing tells of was not lost
    assert after["people"] == before["people"]
    assert after["photos"].items() <= before["photos"].items()
    assert "Eve" not in after["people"]
    assert "3" not in after["photos"]


@pytest.mark.parametrize(
    ("damage", "photos"),
    [
        ("UPDATE people SET name = 'Hanna'", 3),
        ("UPDATE people SET added = 7", 3),
        ("UPDATE examples SET descriptor = zeroblob(512) WHERE picture IS NULL", 3),
        ("DELETE FROM examples", 3),
        ("UPDATE photos SET path = '/nowhere.jpg' WHERE id = 2", 2),
        ("UPDATE faces SET x0 = x0 + 1 WHERE photo = 2", 2),
        ("UPDATE folders SET path = '/b'", 3),
        ("UPDATE meta SET value = '{' WHERE key = 'settings'", 3),
    ],
)
def test_rows_that_were_altered_come_back_or_are_read_again(path: Path, damage: str, photos: int) -> None:
    before = contents(path)
    alter(path, damage)
    done = Library.repair(path)
    assert done.lost == ()
    after = contents(path)
    assert {**after, "photos": None} == {**before, "photos": None}
    assert (len(after["photos"]), done.to_read) == (photos, 3 - photos)


def delete_log(path: Path) -> None:
    (path / "index" / "catalog.sqlite").unlink()
    (path / "index" / "commits.log").unlink()


@pytest.mark.parametrize(
    ("damage", "photos"),
    [
        (lambda path: (path / "index" / "catalog.sqlite").unlink(), 3),
        (lambda path: (path / "index" / "commits.log").write_bytes(b"nonsense\n"), 3),
        (lambda path: next((path / "index" / "segments").iterdir()).unlink(), 0),
        (lambda path: shutil.rmtree(path / "index"), 0),
        (lambda path: shutil.rmtree(path / "index" / "segments"), 0),
        (lambda path: (path / "library.journal").unlink(), 3),
        (lambda path: (path / "library.journal").write_bytes(b"\xff" * 999), 3),
    ],
)
def test_what_the_index_lost_is_read_again(path: Path, damage: Callable[[Path], object], photos: int) -> None:
    before = contents(path)
    damage(path)
    done = Library.repair(path)
    assert (done.photos, done.people, done.to_read) == (photos, 1, 3 - photos)
    assert bool(done.lost) == (photos == 0)
    after = contents(path)
    assert (after["people"], after["folders"]) == (before["people"], before["folders"])
    if photos:
        assert after == before


def test_an_index_without_a_trace_of_its_settings_is_made_again(path: Path) -> None:
    delete_log(path)
    done = Library.repair(path)
    assert (done.photos, done.to_read) == (0, 3)
    assert any("index of faces" in text for text in done.lost)
    assert contents(path)["people"] == {"Anna": [PHOTO.format(0), "/elsewhere.jpg"]}
    assert (path / "quarantine" / "index" / "segments").is_dir()


def test_items_that_are_no_photo_go_and_photos_without_items_are_marked(path: Path) -> None:
    with SetIndex.open(path / "index") as index:
        index.add(["77", "no number"], np.eye(2, 128, dtype=np.float32), [1, 1])
        index.delete(["2"])
    done = Library.repair(path)
    assert (done.photos, done.to_read, done.lost) == (2, 3, ())
    assert set(contents(path)["photos"]) == {"0", "2"}
    with Library.open(path) as library:
        known = library.photos.known_files()
    assert [path for path, file in known.items() if file.state == "unread"] == [PHOTO.format(1).encode()]


def test_changes_that_an_older_database_lacks_come_from_the_journal(path: Path, tmp_path: Path) -> None:
    shutil.copy(path / "library.db", tmp_path / "older.db")
    with Library.open(path) as library:
        library.people.remove("Anna")
        library.people.add("Carl", [Example(unit(5))])
    shutil.copy(tmp_path / "older.db", path / "library.db")
    done = Library.repair(path)
    assert done.people == 1
    assert list(contents(path)["people"]) == ["Carl"]


def test_nothing_is_changed_until_the_repaired_state_is_complete(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter(path, "UPDATE people SET name = 'Hanna'")
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and "lock" not in p.name}

    def killed(library: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(repair, "complete_staging", killed)
        with pytest.raises(KeyboardInterrupt):
            Library.repair(path)
    assert {p: p.read_bytes() for p in before} == before
    assert Library.repair(path).people == 1


def test_what_a_repair_put_aside_goes_with_what_is_forgotten(path: Path) -> None:
    alter(path, "UPDATE people SET added = 7")
    Library.repair(path)
    assert (path / "quarantine" / "library.db").exists()
    with Library.open(path) as library:
        assert library.check() == []
        library.people.remove("Anna", for_good=True)
    assert not (path / "quarantine").exists()


def test_a_library_that_is_being_written_is_not_repaired(path: Path) -> None:
    with Library.open(path) as library, library._writing(), pytest.raises(LockedError):
        Library.repair(path)


def test_where_there_is_nothing_it_says_so(path: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAnIndexError, match="nothing to repair"):
        Library.repair(tmp_path / "nowhere")
    (path / "library.db").write_bytes(b"no database")
    (path / "library.journal").unlink()
    shutil.rmtree(path / "index")
    with pytest.raises(NotAnIndexError, match="setnet restore"):
        Library.repair(path)
    assert (path / "library.db").read_bytes() == b"no database"


def test_flips_anywhere_in_the_database_are_repaired(path: Path, tmp_path: Path) -> None:
    Database(path / "library.db").close()
    whole, people = (path / "library.db").read_bytes(), contents(path)["people"]
    chance = random.Random(1)
    for turn in range(int(os.environ.get("SETNET_FLIPS", "12"))):
        copy = shutil.copytree(path, tmp_path / f"copy{turn}")
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 20, 400])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        (copy / "library.db").write_bytes(damaged)
        try:
            done = Library.repair(copy)
        except StorageError as error:
            raise AssertionError(f"turn {turn}: {error}") from error
        after = contents(copy)
        assert done.photos == len(after["photos"])
        assert after["people"] == people
        assert "3" not in after["photos"]
        shutil.rmtree(copy)


def test_a_read_that_fails_once_is_not_taken_for_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(path)
    alter(path, "UPDATE people SET added = 7")
    copy_sound, tried = repair._Repair._copy_sound, []

    def failing_once(*arguments: Any) -> bool:
        tried.append(arguments)
        return len(tried) > 1 and copy_sound(*arguments)

    monkeypatch.setattr(repair._Repair, "_copy_sound", failing_once)
    assert Library.repair(path).lost == ()
    assert contents(path) == before
