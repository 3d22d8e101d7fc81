"""The changes that faults are injected into: what is there before, what is done, what is there now.

A change is atomic: whatever happens, `contents` is that of before or that of after, and doing it again leads
to after.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setnet import SetIndex
from setnet.errors import InvalidInputError, NotAnIndexError

__all__ = ["SCENARIOS", "Scenario"]

DIM = 4
OLD_INDEX = Path(__file__).parents[1] / "index" / "fixtures" / "index_v1.zip"


@dataclass(frozen=True)
class Scenario:
    """How to make the base in an empty folder, how to change it, and what it holds."""

    make: Callable[[Path], None]
    change: Callable[[Path], None]
    contents: Callable[[Path], Any]


# -- the engine ----------------------------------------------------------------------------------------


def elements(seed: int, count: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)


def make_index(root: Path) -> None:
    """Make seven segments of two items each, one of them deleted: the next add merges them."""
    with SetIndex.create(root / "index", DIM) as index:
        for n in range(7):
            rows = np.concatenate([elements(2 * n), elements(2 * n + 1)])
            index.add([f"i{2 * n}", f"i{2 * n + 1}"], rows, [2, 2], attributes=[{"n": n}, None])
        index.delete(["i13"])


def index_contents(root: Path) -> dict[str, Any]:
    """Return what an index holds, byte for byte; raise when a check finds damage."""
    with SetIndex.open(root / "index") as index:
        assert index.check().problems == []
        held = {
            item.id: (index.elements(item.id).tobytes(), tuple(sorted(item.attributes.items())))
            for item in index.items()
        }
        index.compact()
        assert {item.id for item in index.items()} == set(held)
    aside = root / "index" / "quarantine"
    assert not aside.exists() or not os.listdir(aside), "deleted means gone"
    return held


def on_index(change: Callable[[SetIndex], object]) -> Scenario:
    def changed(root: Path) -> None:
        with SetIndex.open(root / "index") as index:
            change(index)

    return Scenario(make_index, changed, index_contents)


def create(root: Path) -> None:
    try:
        SetIndex.create(root / "index", DIM).close()
    except NotAnIndexError:
        raise
    except ValueError:  # made by an attempt before this one
        SetIndex.open(root / "index").close()


def created(root: Path) -> dict[str, Any]:
    create(root)  # wherever it was cut short, it can be made or opened
    return index_contents(root)


def make_damaged(root: Path) -> None:
    make_index(root)
    (root / "index" / "catalog.sqlite").write_bytes(b"no database any more")


def repair(root: Path) -> None:
    SetIndex.repair(root / "index")


def repaired(root: Path) -> dict[str, Any]:
    repair(root)  # wherever it was cut short, it can be done again
    return index_contents(root)


def make_backup(root: Path) -> None:
    """Make an index and a backup of an earlier state of it."""
    make_index(root)
    with SetIndex.open(root / "index") as index:
        index.backup(root / "backup")
        index.add(["new"], elements(50), [2])
        index.delete(["i0"])


def back_up(root: Path) -> None:
    with SetIndex.open(root / "index", read_only=True) as index:
        index.backup(root / "backup")


def backup_contents(root: Path) -> list[str]:
    with SetIndex.open(root / "backup", read_only=True) as index:
        assert index.check().problems == []
        return [item.id for item in index.items()]


def make_old(root: Path) -> None:
    """Take an index that the last release wrote."""
    shutil.unpack_archive(OLD_INDEX, root)


SCENARIOS: dict[str, Scenario] = {
    "add": on_index(lambda index: index.add(["new"], elements(50), [2], attributes=[{"n": 50}])),
    "upsert": on_index(lambda index: index.add(["i2"], elements(51), [2])),
    "delete": on_index(lambda index: index.delete(["i5", "i6"])),
    "compact": on_index(lambda index: index.compact()),
    "tag": on_index(lambda index: index.tag({"Anna": elements(3)[0]})),
    "open": on_index(lambda index: None),
    "create": Scenario(lambda root: None, create, created),
    "repair": Scenario(make_damaged, repair, repaired),
    "backup": Scenario(make_backup, back_up, backup_contents),
    "upgrade": Scenario(make_old, lambda root: SetIndex.open(root / "index").close(), index_contents),
}


# -- the library ---------------------------------------------------------------------------------------


def make_library(root: Path) -> None:
    """Make a library of three photos and one person; the photos lie beside the folder under test."""
    from setnet.library import Library

    photos = photos_of(root)
    with Library.create(root / "library") as library:
        library.index([photos / "old"], workers=0)
        library.add_person("Anna", [str(photos / "old" / "a.jpg")])


def photos_of(root: Path) -> Path:
    """Return the folder with the photos of the scenarios, `old` and `new`."""
    return Path(os.environ["SETNET_FAULT_PHOTOS"])


def library_contents(root: Path) -> dict[str, Any]:
    """Return what a library knows, and that all its files are sound."""
    from setnet.library import Library

    with Library.open(root / "library") as library:
        library.index([photos_of(root) / "old"], workers=0)  # finishes what was cut short
        assert library.check() == []
        photos = {
            photo.path.name: (len(photo.faces), library.descriptors(photo.id).tobytes())
            for photo in library.catalog.all_photos()
        }
        return {"photos": photos, "people": [p.name for p in library.people]}


def on_library(change: Callable[[Any, Path], object]) -> Scenario:
    def changed(root: Path) -> None:
        from setnet.library import Library

        with Library.open(root / "library") as library:
            change(library, photos_of(root))

    return Scenario(make_library, changed, library_contents)


def create_library(root: Path) -> None:
    from setnet.library import Library

    try:
        Library.create(root / "library").close()
    except InvalidInputError:  # made by an attempt before this one
        Library.open(root / "library").close()


def created_library(root: Path) -> dict[str, Any]:
    from setnet.library import Library

    create_library(root)  # wherever it was cut short, it can be made or opened
    with Library.open(root / "library") as library:
        assert library.check() == []
        return {"photos": library.catalog.counts().photos, "dim": library.dim}


SCENARIOS |= {
    "library-create": Scenario(lambda root: None, create_library, created_library),
    "library-index": on_library(lambda library, photos: library.index([photos / "new"], workers=0)),
    "library-forget": on_library(lambda library, photos: library.forget([photos / "old" / "b.jpg"])),
    "library-person": on_library(
        lambda library, photos: library.add_person("Ben", [str(photos / "old" / "b.jpg")])
    ),
    "library-rename": on_library(lambda library, photos: library.people.rename("Anna", "Anne")),
    "library-remove": on_library(lambda library, photos: library.people.remove("Anna")),
}
