"""A repair saves all that people have, and the history where the database has all changes."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.library import Example, Library
from setnet.library.database import Database
from setnet.library.journal import JOURNAL_TABLES
from tests.support.stored_rows import alter

COLUMNS = {**JOURNAL_TABLES, "changes": "id at kind summary people undoes"}


@pytest.fixture
def path(stored: Path) -> Path:
    """A library with something in every table of people."""
    vectors = np.eye(3, 128, dtype=np.float32)
    with Library.open(stored) as library:
        people = library.people
        people.add("Zoë", [Example(vectors[0])])
        people.add("Anna", [Example(row, picture=b"JPEG") for row in vectors])
        people.edit("Anna", aliases=["Annie"], note="floor 4", cover=people.examples("Anna")[0].number)
        people.confirm("Anna", "2", 0)
        people.reject("Zoë", "4", 1)
        people.reject("Zoë", "4", 2)
        people.undo()
        people.remove_examples("Anna", [people.examples("Anna")[1].number or 0])
    return stored


def contents(path: Path) -> dict[str, Any]:
    """Return all rows of people; raise when a check finds damage."""
    with Library.open(path) as library:
        assert library.check() == []
        with library._database.reading() as db:
            return {
                table: sorted(db.execute(f"SELECT {', '.join(columns.split())} FROM {table}"), key=repr)
                for table, columns in COLUMNS.items()
            }


def test_damage_elsewhere_costs_people_nothing(path: Path) -> None:
    before = contents(path)
    alter(path, "photos", "UPDATE photos SET path = '/nowhere.jpg' WHERE id = 3")
    assert Library.repair(path).lost == ()
    assert contents(path) == before
    with Library.open(path) as library:
        library.people.undo()  # the journal came along
        assert library.people.get("Anna").examples == 4
        numbers = [e.number or 0 for e in library.people.examples("Anna")]
        library.people.add("Eve", [Example(np.ones(128, np.float32))])
        assert library.people.examples("Eve")[0].number == max(numbers) + 1  # none is given twice


@pytest.mark.parametrize(
    ("table", "damage"),
    [
        ("aliases", "UPDATE aliases SET name = 'Hanna'"),
        ("labels", "UPDATE labels SET x0 = 7 WHERE NOT is_match"),
        ("people", "UPDATE people SET note = 'other' WHERE name = 'Anna'"),
        ("people", "DELETE FROM people WHERE name = 'Anna'"),
        ("examples", "DELETE FROM examples"),
    ],
)
def test_a_damaged_row_of_people_costs_nothing(path: Path, table: str, damage: str) -> None:
    before = contents(path)
    alter(path, table, damage)
    with Library.open(path) as library:
        assert library.check() != []
    assert Library.repair(path).lost == ()
    assert contents(path) == before


def damaged(path: Path) -> Iterator[str]:
    """Damage a database in one way after another."""
    whole = path.read_bytes()
    chance = random.Random(2)
    for turn in range(int(os.environ.get("SETNET_FLIPS", "8"))):
        flipped = bytearray(whole)
        for _ in range(chance.choice([1, 20, 200])):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        yield f"flips {turn}"
    for share in (0.5, 0.8, 0.95):
        path.write_bytes(whole[: int(share * len(whole))])
        yield f"cut at {share}"
    path.write_bytes(whole[:40] + bytes(4000) + whole[4040:])
    yield "list of tables lost"


def test_whatever_is_damaged_nobody_is_made_up(path: Path, tmp_path: Path) -> None:
    Database(path / "library.db").close()
    names = {"Nobody", "Zoë", "Anna"}
    copy = shutil.copytree(path, tmp_path / "copy")
    sound = (copy / "library.db").read_bytes()
    for turn in damaged(copy / "library.db"):
        try:
            Library.repair(copy)
            rows = contents(copy)
        except Exception as error:
            raise AssertionError(turn) from error
        assert {row[1] for row in rows["people"]} == names, turn
        assert {row[2] for row in rows["aliases"]} == {"Annie"}, turn
        assert {row[8] for row in rows["labels"]} == {0, 1}, turn
        shutil.rmtree(copy)
        shutil.copytree(path, copy)
        assert (copy / "library.db").read_bytes() == sound
