"""A program that follows the feed of changes knows what is in the library."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.library import Example, Library
from setnet.library.photo_writer import PhotoWriter
from tests.support.invented_photos import face_of, store


class Follower:
    """Keeps a list of what is in a library by its feed alone."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.items: set[tuple[str, str]] = set()

    def follow(self, library: Library, limit: int = 3) -> list[str]:
        said, more = [], True
        while more:
            page = library.changes(self.cursor, limit)
            assert len(page.changes) <= limit
            for change in page.changes:
                said.append(change.what)
                if change.what == "removed":
                    self.items.discard((change.kind, change.id))
                else:
                    self.items.add((change.kind, change.id))
            self.cursor, more = page.cursor, page.more
        return said


def contents(library: Library) -> set[tuple[str, str]]:
    photos = {("photo", photo.id) for photo in library.photos.all_photos()}
    return photos | {("person", person.id) for person in library.people}


def remove(library: Library, *ids: str) -> None:
    with library._writing() as index:
        PhotoWriter(library.database, index).remove([int(i) for i in ids])


def test_whoever_follows_the_feed_has_what_the_library_has(tmp_path: Path) -> None:
    chance = random.Random(5)
    often, seldom = Follower(), Follower()
    with Library.create(tmp_path / "library") as library:
        for step in range(40):
            photos = sorted(photo.id for photo in library.photos.all_photos())
            people = [person.name for person in library.people]
            what = chance.randrange(5)
            if what <= 1 or not photos:
                store(library, {f"{chance.randrange(12)}.jpg": [chance.randrange(4)]})
            elif what == 2:
                remove(library, chance.choice(photos))
            elif what == 3 or not people:
                library.people.add(f"person {step}", [Example(face_of(step))])
            else:
                library.people.remove(chance.choice(people))
            if step % 2:
                often.follow(library)
                assert often.items == contents(library)
        seldom.follow(library)
        often.follow(library)
        assert seldom.items == often.items == contents(library)
        assert library.changes(often.cursor).changes == ()
        assert library.check() == []


def test_an_item_comes_once_with_what_happened_since_the_reader_was_there(tmp_path: Path) -> None:
    with Library.create(tmp_path / "library") as library:
        store(library, {"a.jpg": [1], "b.jpg": [2]})
        reader = Follower()
        assert reader.follow(library) == ["added", "added"]
        store(library, {"a.jpg": [3]})
        store(library, {"a.jpg": [4], "c.jpg": [1]})
        assert reader.follow(library) == ["changed", "added"]
        # Added and changed before a reader has come to the end is added, on whichever page it comes.
        store(library, {"b.jpg": [1]})
        new = Follower()
        assert new.follow(library, limit=1) == ["added"] * 3
        assert reader.follow(library) == ["changed"]
        library.people.add("Anna", [Example(face_of(1))])
        library.people.edit("Anna", note="from the choir")
        assert reader.follow(library) == ["added"]
        library.people.rename("Anna", "Ann")
        assert reader.follow(library) == ["changed"]
        library.people.undo()
        assert reader.follow(library) == ["changed"]


def test_cursors_of_another_library_and_nonsense_are_refused(tmp_path: Path) -> None:
    with Library.create(tmp_path / "one") as one, Library.create(tmp_path / "two") as two:
        store(one, {"a.jpg": [1]})
        store(two, {"a.jpg": [1]})
        cursor = one.changes().cursor
        feed = cursor.partition(".")[0]
        for wrong in (two.changes().cursor, f"{feed}.99", "", "x", "1.2.3.4", "0" * 90):
            with pytest.raises(InvalidInputError, match="cursor"):
                one.changes(wrong)
        with pytest.raises(InvalidInputError, match="limit 0"):
            one.changes(limit=0)


def test_after_a_repair_readers_are_told_to_begin_again(tmp_path: Path) -> None:
    place = tmp_path / "library"
    with Library.create(place) as library:
        store(library, {"a.jpg": [1], "b.jpg": [2]})
        library.photos.set_external_id("2", "B")
        cursor = library.changes().cursor
    shutil.rmtree(place / "index")
    Library.repair(place)
    with Library.open(place) as library:
        with pytest.raises(InvalidInputError, match="repaired"):
            library.changes(cursor)
        known = {row[0] for row in library.database.connection.execute("SELECT external FROM photo_facts")}
        assert known == {"B"}
        assert library.check() == []


def test_an_external_id_stays_with_its_photo_and_goes_with_it(tmp_path: Path) -> None:
    with Library.create(tmp_path / "library") as library:
        store(library, {"a.jpg": [1], "b.jpg": [2]})
        assert library.photos.set_external_id("1", "A").external_id == "A"
        store(library, {"a.jpg": [3]})
        found = library.photos.with_external_id("A")
        assert found is not None
        assert found.to_dict()["external_id"] == "A"
        with pytest.raises(InvalidInputError, match="that of photo 1"):
            library.photos.set_external_id("2", "A")
        for wrong in ("", "x" * 201, "a\nb"):
            with pytest.raises(InvalidInputError, match="1 to 200 printable"):
                library.photos.set_external_id("2", wrong)
        with pytest.raises(InvalidInputError, match="no photo"):
            library.photos.set_external_id("77", "A")
        remove(library, "1")
        assert library.photos.with_external_id("A") is None
        assert library.photos.set_external_id("2", "A").external_id == "A"
        assert library.check() == []


def test_noting_a_photo_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    with Library.create(tmp_path / "library") as library, library.database.writing() as db:
        first = _steps_to_add(db, range(100))
        _steps_to_add(db, range(100, 2000))
        assert _steps_to_add(db, range(2000, 2100)) < 2 * first


def _steps_to_add(db: sqlite3.Connection, numbers: range) -> int:
    """Return how many times a hundred instructions of SQLite it takes to insert photos of these numbers."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    db.set_progress_handler(step, 100)
    db.executemany(
        "INSERT INTO photos (path, size, mtime_ns, hash, width, height, state, stored) "
        "VALUES (?, 1, 1, x'00', 4, 3, 'ready', 0)",
        [(b"/%d.jpg" % number,) for number in numbers],
    )
    db.set_progress_handler(None, 0)
    return steps
