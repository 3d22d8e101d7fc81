"""Any one file is lost, cut or altered: everything is there, or what is gone is named, or opening is refused.

A trial does what the documentation says: open, check, and repair where one of them complains.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.errors import SetNetError
from setnet.library import Example, Library
from tests.support.invented_photos import face_of, store

PEOPLE = {"Anna": 1, "Ben": 2, "Carl": 3}
FORGOTTEN = {"0-0.jpg", "3-1.jpg"}
DAMAGES = ("lost", "cut", "emptied", "a bit", "a block of zeros", "a block of noise")
BLOCK = 512

Trial = Callable[[Path, Path], str]  # the whole one and the damaged one; how it ended


def make_library(folder: Path) -> Library:
    """Make a library with photos, deleted ones too, and people."""
    library = Library.create(folder)
    for n in range(6):
        store(library, {f"{n}-{m}.jpg": [n % 4, (n + m) % 5] for m in range(4)}, float(86400 * n))
    library.forget([f"/invented/{name}" for name in FORGOTTEN])
    for name, person in PEOPLE.items():
        library.people.add(name, [Example(face_of(person, 100), "portrait")])
    library.people.rename("Carl", "Karl")
    library.people.rename("Karl", "Carl")
    return library


def make_index(folder: Path) -> SetIndex:
    """Make an index with segments of several sizes, and items that were deleted or replaced."""
    index, chance = SetIndex.create(folder, 16), np.random.default_rng(0)
    for n in range(5):
        names = [f"{n}-{m}" for m in range(6)]
        index.add(names, chance.normal(size=(12, 16)), [2] * 6, [{"n": n}] * 6)
    index.compact()
    for n in range(3):
        index.add([f"1-{n}", f"late {n}"], chance.normal(size=(3, 16)), [1, 2], [None, {"n": 9}])
        index.delete([f"2-{n}"])
    return index


def held_by_library(library: Library) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return photos and people with all that a search uses of them."""
    stored = library.set_index.contents()
    rows = np.split(stored.elements, np.cumsum(stored.counts)[:-1]) if len(stored.ids) else []
    vectors = {name: own.tobytes() for name, own in zip(stored.ids, rows, strict=True)}
    photos = {
        photo.path.name: (photo.taken, [face.box for face in photo.faces], vectors.get(photo.id))
        for photo in library.photos.all_photos()
    }
    people = {
        person.name: [example.descriptor.tobytes() for example in library.people.examples(person)]
        for person in library.people
    }
    return photos, people


def held_by_index(index: SetIndex) -> dict[str, Any]:
    """Return the items with their elements and attributes."""
    stored = index.contents()
    rows = np.split(stored.elements, np.cumsum(stored.counts)[:-1]) if len(stored.ids) else []
    vectors = {name: own.tobytes() for name, own in zip(stored.ids, rows, strict=True)}
    return {item.id: (vectors[item.id], dict(item.attributes)) for item in index}


def damage(file: Path, how: str, chance: random.Random) -> int:
    """Lose, cut or alter a file; return where."""
    content = bytearray(file.read_bytes())
    at = chance.randrange(max(len(content), 1))
    if how == "lost":
        file.unlink()
    elif how == "a bit" and content:
        content[at] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
    elif how.startswith("a block") and content:
        at -= at % BLOCK
        size = len(content[at : at + BLOCK])
        content[at : at + size] = bytes(size) if how.endswith("zeros") else chance.randbytes(size)
        file.write_bytes(content)
    else:
        file.write_bytes(content[: at if how == "cut" else 0])
    return at


def try_library(whole: Path, damaged: Path) -> str:
    """Open, check and repair a library; compare it with the whole one."""
    with Library.open(whole) as library:
        photos, people = held_by_library(library)
    try:
        with Library.open(damaged) as library:
            if not (problems := library.check()):
                assert held_by_library(library) == (photos, people), "damage that nobody noticed"
                return "sound"
    except SetNetError as error:
        problems = [str(error)]
    try:
        report = Library.repair(damaged)
    except SetNetError:
        return "refused"
    with Library.open(damaged) as library:
        assert library.check() == []
        photos_left, people_left = held_by_library(library)
    assert photos_left.items() <= photos.items(), f"other photos than before; {problems}"
    for name, examples in people_left.items():
        assert set(examples) <= set(people[name]), f"other examples than before; {report}"
    missing = len(photos) - len(photos_left)
    assert missing <= report.to_read or report.lost, f"{missing} photos are gone: {report}"
    named = any("people" in text or "example" in text for text in report.lost)
    assert people_left == people or named, f"people or examples are gone: {report}"
    return "names lost" if people_left != people else "photos to read" if missing else "repaired"


def try_index(whole: Path, damaged: Path) -> str:
    """Open, check and repair an index; compare it with the whole one."""
    with SetIndex.open(whole, read_only=True) as index:
        items = held_by_index(index)
    try:
        with SetIndex.open(damaged) as index:
            if not (problems := list(index.check().problems)):
                assert held_by_index(index) == items, "damage that nobody noticed"
                return "sound"
    except SetNetError as error:
        problems = [str(error)]
    try:
        report = SetIndex.repair(damaged)
    except SetNetError:
        return "refused"
    with SetIndex.open(damaged) as index:
        index.compact()
        assert index.check().problems == []
        left = held_by_index(index)
    assert left.items() <= items.items(), f"other items than before; {problems}"
    assert left == items or report.lost, f"{len(items) - len(left)} items are gone: {report}"
    return "repaired" if left == items else "items lost"


KINDS: dict[str, tuple[Callable[[Path], Any], Trial]] = {
    "library": (make_library, try_library),
    "index": (make_index, try_index),
}


Damage = tuple[str, str, str]  # closed or killed, which file, how
Plan = Callable[[dict[str, list[str]], random.Random], Iterator[Damage]]


def every_file(files: dict[str, list[str]], chance: random.Random) -> Iterator[Damage]:
    """Lose every file in every state, and damage it in one other way."""
    for state, names in files.items():
        for name in names:
            yield state, name, "lost"
            yield state, name, chance.choice(DAMAGES[1:])


def random_files(files: dict[str, list[str]], chance: random.Random) -> Iterator[Damage]:
    """Damage any file in any way, 200 times."""
    for _ in range(200):
        state = chance.choice(list(files))
        yield state, chance.choice(files[state]), chance.choice(DAMAGES)


def try_many(kind: str, folder: Path, seed: int, plan: Plan) -> Counter[str]:
    """Make trials with a store that was closed and one that a kill left; return how they ended."""
    make, trial = KINDS[kind]
    opened = make(folder / "closed")
    shutil.copytree(folder / "closed", folder / "killed")
    opened.close()
    files = {
        state: sorted(
            str(path.relative_to(folder / state)) for path in (folder / state).rglob("*") if path.is_file()
        )
        for state in ("closed", "killed")
    }
    chance, ended = random.Random(seed), Counter[str]()
    for number, (state, name, how) in enumerate(plan(files, chance)):
        damaged = folder / "damaged"
        shutil.copytree(folder / state, damaged)
        at = damage(damaged / name, how, chance)
        try:
            ended[trial(folder / "closed", damaged)] += 1
        except BaseException as error:
            what = f"{state}, {name}: {how} at {at}"
            raise AssertionError(f"{kind}, seed {seed}, trial {number}, {what}: {error}") from error
        shutil.rmtree(damaged)
    return ended


@pytest.mark.parametrize("kind", KINDS)
def test_any_one_file_lost_or_altered_costs_nothing_in_silence(kind: str, tmp_path: Path) -> None:
    ended = try_many(kind, tmp_path, 1, every_file)
    assert ended["repaired"]


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2, 52))
def test_any_one_file_lost_or_altered_costs_nothing_in_silence_for_long(
    kind: str, tmp_path: Path, seed: int
) -> None:
    try_many(kind, tmp_path, seed, random_files)
