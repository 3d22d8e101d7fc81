"""A repair saves what people have: the journal as a whole or not at all."""

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
from setnet.library.row_sums import COLUMNS
from setnet.library.salvage import _first_page
from tests.support.stored_rows import alter


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
        with library.database.reading() as db:
            return {
                table: sorted(db.execute(f"SELECT {', '.join(columns.split())} FROM {table}"), key=repr)
                for table, columns in COLUMNS.items()
            }


def test_damage_elsewhere_costs_people_nothing(path: Path) -> None:
    before = contents(path)
    alter(path, "photos", "UPDATE photos SET path = '/nowhere.jpg' WHERE id = 3")
    assert any("1 photo" in text for text in Library.repair(path).lost)
    after = contents(path)
    assert {t: r for t, r in after.items() if t != "photos"} == {
        t: r for t, r in before.items() if t != "photos"
    }
    with Library.open(path) as library:
        library.people.undo()  # the journal came along
        assert library.people.get("Anna").examples == 4
        numbers = [e.number or 0 for e in library.people.examples("Anna")]
        library.people.add("Eve", [Example(np.ones(128, np.float32))])
        assert library.people.examples("Eve")[0].number == max(numbers) + 1  # none is given twice


@pytest.mark.parametrize(
    ("table", "damage", "lost"),
    [
        ("aliases", "UPDATE aliases SET name = 'Hanna'", ["1 other name of"]),
        ("verdicts", "UPDATE verdicts SET x0 = 7 WHERE says = 'no'", ["1 face that was confirmed"]),
        ("people", "UPDATE people SET note = 'other' WHERE name = 'Anna'", []),
        ("changes", "UPDATE changes SET summary = '' WHERE id = 1", ["the journal of changes"]),
        ("changed_rows", "DELETE FROM changed_rows WHERE id = 1", ["the journal of changes"]),
        ("removed_examples", "UPDATE removed_examples SET person = 9", ["the journal of changes"]),
        ("removed_verdicts", "DELETE FROM removed_verdicts", ["the journal of changes"]),
    ],
)
def test_a_damaged_row_of_people_costs_itself_and_one_of_the_journal_the_journal(
    path: Path, table: str, damage: str, lost: list[str]
) -> None:
    before = contents(path)
    alter(path, table, damage)
    said = Library.repair(path).lost
    assert len(said) == len(lost)
    assert all(text.startswith(start) for text, start in zip(said, lost, strict=True))
    after = contents(path)
    for name in ("people", "examples", "aliases", "verdicts"):
        assert len(after[name]) == len(before[name]) - (name == table and bool(lost))
    journal = ("changes", "changed_rows", "removed_examples", "removed_verdicts")
    if table in journal:
        assert not any(after[name] for name in journal)
        with Library.open(path) as library:
            assert library.people.history() == []
            library.people.rename("Anna", "Anne")
            library.people.undo()
    else:
        assert [after[name] for name in journal] == [before[name] for name in journal]


def test_a_person_whose_row_is_lost_keeps_examples_under_another_name(path: Path) -> None:
    alter(path, "people", "UPDATE people SET name = 'Hanna' WHERE name = 'Anna'")
    Library.repair(path)
    with Library.open(path) as library:
        (person,) = (p for p in library.people if p.name.startswith("recovered"))
        assert person.examples == 3
        assert len(person.id) == 12
        assert library.people.verdicts(person.name)[0].says == "yes"


def test_the_list_of_all_tables_fits_into_the_first_page() -> None:
    for is_vacuumed in (True, False):
        assert _first_page(is_vacuumed)[100] == 13  # a leaf of the table of tables


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
    found = []
    for turn in damaged(copy / "library.db"):
        try:
            Library.repair(copy, revive=True)
            rows = contents(copy)
        except Exception as error:
            raise AssertionError(turn) from error
        people = {row[1] for row in rows["people"]}
        assert {name for name in people if not name.startswith("recovered person")} <= names, turn
        assert {row[2] for row in rows["aliases"]} <= {"Annie"}, turn
        assert {row[8] for row in rows["verdicts"]} <= {"yes", "no"}, turn
        found.append(len(people))
        shutil.rmtree(copy)
        shutil.copytree(path, copy)
        assert (copy / "library.db").read_bytes() == sound
    assert sum(found) > 2 * len(found)  # most are saved most of the time
