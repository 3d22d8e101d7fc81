"""Who is in photos with whom, compared with counting in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from pathlib import Path

from typer.testing import CliRunner

import setnet.cli.people  # noqa: F401  adds its commands
from setnet.cli.groups import app
from setnet.library import Example, Library, PeopleTogether
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
        assert all("Ben" in one.people and len(one.people) >= 3 and one.photos >= 2 for one in bens)
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
