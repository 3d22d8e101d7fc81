"""Where everybody appears, compared with searches for one person each, and with plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import setnet.cli.people  # noqa: F401  adds its commands
from setnet.cli.groups import app
from setnet.library import Example, Library, PeopleTogether, QueryPerson, appearances
from setnet.library.appearances import find_appearances
from tests.support.invented_photos import face_of, store

NAMES = ("Anna", "Ben", "Cleo", "Dora", "Emil", "Fay")


def test_sets_are_those_that_counting_finds(tmp_path: Path) -> None:
    chance = random.Random(3)
    photos = {f"{n}.jpg": chance.sample(range(1, 9), chance.randint(0, 6)) for n in range(60)}
    with Library.create(tmp_path / "library") as library:
        store(library, photos)
        for number, name in enumerate(NAMES, 1):
            library.people.add(name, [Example(face_of(number, view)) for view in range(3)])
        first = next(photo for photo in library.photos.all_photos() if not photos[photo.path.name])
        for name in ("Anna", "Fay"):
            library.people.tag(name, first.id)
        photos[first.path.name] = [1, 6]
        counts = Counter(
            tuple(NAMES[number - 1] for number in some)
            for people in photos.values()
            for size in range(2, 6)
            for some in combinations(sorted(p for p in people if p <= len(NAMES)), size)
        )
        found = library.people.together()
        assert {one.people: one.photos for one in found} == dict(counts)
        assert [one.photos for one in found] == sorted(counts.values(), reverse=True)
        bens = library.people.together("ben", min_people=3, min_photos=2)
        assert bens
        assert bens == [
            one for one in library.people.together(min_people=3, min_photos=2) if "Ben" in one.people
        ]
        said = CliRunner().invoke(app, ["together", "--library", str(library.path), "-n", "3"]).output
        assert ", ".join(found[0].people) in said


def test_one_face_counts_for_one_person(tmp_path: Path) -> None:
    with Library.create(tmp_path / "library") as library:
        store(library, {"a.jpg": [1], "b.jpg": [1, 2], "c.jpg": []})
        assert library.people.together() == []
        for name in ("Anna", "Anna's twin"):
            library.people.add(name, [Example(face_of(1, view)) for view in range(3)])
        assert library.people.together() == []
        photo = next(p.id for p in library.photos.all_photos() if p.path.name == "b.jpg")
        library.people.confirm("Anna's twin", photo, 1, None)
        library.people.confirm("Anna", photo, 0, None)
        assert library.people.together() == [PeopleTogether(("Anna", "Anna's twin"), 1)]


def test_counts_are_those_of_searches_whatever_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def spy(library: Library, people: Sequence[QueryPerson], **options: Any) -> Any:
        counted.append(len(people))
        return find_appearances(library, people, **options)

    monkeypatch.setattr(appearances, "find_appearances", spy)
    monkeypatch.setattr(appearances, "_ITEMS", 7)  # several blocks
    chance = random.Random(5)
    with Library.create(tmp_path / "library") as library:
        people = library.people

        def check(counted_again: int) -> None:
            for _ in range(2):
                found = {name: people.photo_counts()[people.get(name).id] for name in NAMES[:4]}
                assert found == {name: people.photos(name, limit=0).total for name in NAMES[:4]}
            assert counted == [counted_again] * bool(counted_again)
            counted.clear()

        store(library, {f"{n}.jpg": chance.sample(range(1, 9), chance.randint(0, 4)) for n in range(40)})
        library.groups.update()
        for number, name in enumerate(NAMES[:4], 1):
            people.add(name, [Example(face_of(number, view)) for view in range(2)])
        check(4)
        group = library.groups.page("unnamed")[0]
        library.groups.name(group.id, "Emil")
        check(1)
        some = people.photos("Ben").photos
        people.reject("Ben", some[0].photo.id, some[0].face or 0)
        check(1)
        people.confirm("Cleo", some[1].photo.id, some[1].face or 0, None)
        check(1)
        empty = next(photo.id for photo in library.photos.all_photos() if not photo.faces)
        people.tag("Dora", empty)
        check(1)
        people.remove_examples("Dora", [example.number or 0 for example in people.examples("Dora")])
        check(1)
        people.undo()
        check(1)
        people.rename("Dora", "Dorothy")
        people.rename("Dorothy", "Dora")
        check(0)
        store(library, {"new.jpg": [1, 2, 3, 4]})
        check(5)
        people.merge("Anna", ["Emil"], "merge")
        check(1)
