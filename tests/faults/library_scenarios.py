"""The changes of a library that faults are injected into."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import setnet.faces
from setnet.errors import InvalidInputError
from setnet.library import GroupFace, Library
from tests.faults.scenario import Scenario, acknowledgement

__all__ = ["LIBRARY_SCENARIOS", "library_state", "photos_folder", "remember_faces"]


def photos_folder() -> Path:
    """Return the folder with the photos of the scenarios; it lies outside the folder where calls fail."""
    return Path(os.environ["SETNET_FAULT_PHOTOS"])


@cache
def remember_faces() -> None:
    """Find faces once per photo and process: the models touch no file of a library, and take most time."""
    find, found = setnet.faces.extract_faces, dict[tuple[bytes, str], Any]()

    def remembered(image: Any, *settings: Any, **options: Any) -> Any:
        key = np.asarray(getattr(image, "pixels", image)).tobytes(), repr(settings)
        if key not in found:
            found[key] = find(image, *settings, **options)
        return found[key]

    setattr(setnet.faces, "extract_faces", remembered)  # noqa: B010 - a door whose names cannot be assigned


def faces_in(photo: Path) -> Any:
    """Return the faces of a photo."""
    return setnet.faces.extract_faces(setnet.faces.open_photo(photo))


def make_library(root: Path) -> None:
    """Make a library of two photos and one person."""
    remember_faces()
    with Library.create(root / "library") as library:
        library.index([photos_folder() / "old"], workers=0)
        library.people.add_photos("Anna", [str(photos_folder() / "old" / "a.jpg")])


def library_state(library: Library) -> dict[str, Any]:
    """Return what a library knows, after a check that all its files are sound."""
    problems = library.check()
    assert problems == [], problems
    photos = {
        photo.path.name: (len(photo.faces), library.photos.descriptors(photo.id).tobytes())
        for photo in library.photos.all_photos()
    }
    return {
        "photos": photos,
        "people": {p.name: p.examples for p in library.people},
        "changes": [(change.kind, change.undone_by) for change in library.people.history()],
        "groups": sorted(
            (group.name or "", group.hidden, sorted(map(face_name, library.groups.members(group.id))))
            for group in library.groups.page()
        ),
    }


def face_name(face: GroupFace) -> str:
    """Return the photo and the number of a face."""
    return f"{Path(os.fsdecode(face.path)).name}#{face.face}"


def library_contents(root: Path, *, adds_b: bool = False) -> dict[str, Any]:
    """Return what a library knows once the next run has finished what was cut short.

    A photo that is not in it any more has left no descriptor in any file. Where the killed run may have been
    one that adds b.jpg, its faces may lie in the quarantine of the index; forgetting b.jpg deletes them.
    """
    remember_faces()
    with Library.open(root / "library") as library:
        library.index([photos_folder() / "old" / "a.jpg"], workers=0)
        library.groups.update()  # groups that are not up to date are no loss
        assert library.photos.counts().unfinished == 0
        state = library_state(library)
        sources = [e.source for p in library.people for e in library.people.examples(p.name)]
    if not any(str(name).endswith("b.jpg") for name in [*state["photos"], *sources]):
        aside = root / "library" / "index" / "quarantine"
        left = files_with_b(root)
        if adds_b and left and all(path.parent == aside for path in left):
            with Library.open(root / "library") as library:
                library.forget([photos_folder() / "old" / "b.jpg"])
            left = files_with_b(root)
        assert not left, f"faces of b.jpg are left in {left}"
    return state


def files_with_b(root: Path) -> list[Path]:
    """Return the files that have a descriptor of the photo b.jpg."""
    vectors = [face.descriptor.tobytes() for face in faces_in(photos_folder() / "old" / "b.jpg")]
    files = [path for path in (root / "library").rglob("*") if path.is_file()]
    return [path for path in files if any(vector in path.read_bytes() for vector in vectors)]


def on_library(
    change: Callable[[Library, Path], object],
    is_one_step: bool = True,
    make: Callable[[Path], None] = make_library,
) -> Scenario:
    def changed(root: Path) -> None:
        with Library.open(root / "library") as library:
            change(library, photos_folder())
            acknowledgement.given = True

    return Scenario(make, changed, library_contents, is_one_step)


def create_library(root: Path) -> None:
    try:
        Library.create(root / "library").close()
    except InvalidInputError:  # made by an attempt before this one
        Library.open(root / "library").close()


def created_library(root: Path) -> dict[str, Any]:
    create_library(root)  # wherever it was cut short, it can be made or opened
    with Library.open(root / "library") as library:
        return library_state(library)


# Each of the following may be done again after an attempt whose outcome is unknown.


def index_new(library: Library, photos: Path) -> None:
    if library.index([photos / "new"], workers=0).interrupted:
        raise KeyboardInterrupt


def forget(library: Library, photos: Path) -> None:
    try:
        library.forget([photos / "old" / "b.jpg"])
    except InvalidInputError:
        assert not any(photo.path.name == "b.jpg" for photo in library.photos.all_photos())


def add_ben(library: Library, photos: Path) -> None:
    if "Ben" not in library.people:
        library.people.add_photos("Ben", [str(photos / "old" / "b.jpg")])


def rename_anna(library: Library, photos: Path) -> None:
    if "Anna" in library.people:
        library.people.rename("Anna", "Anne")


def remove_anna(library: Library, photos: Path) -> None:
    if "Anna" in library.people:
        library.people.remove("Anna", for_good=True)


def make_merged(root: Path) -> None:
    """Make a library in which Ben was merged into Anna."""
    make_library(root)
    with Library.open(root / "library") as library:
        add_ben(library, photos_folder())
        library.people.merge("Anna", ["Ben"], "merge")


def undo_merge(library: Library, photos: Path) -> None:
    if "Ben" not in library.people:
        library.people.undo()


def make_removed(root: Path) -> None:
    """Make a library in which an example waits in the journal for its undo."""
    make_library(root)
    with Library.open(root / "library") as library:
        add_ben(library, photos_folder())
        library.people.remove_examples("Ben", [e.number or 0 for e in library.people.examples("Ben")])


def make_ungrouped(root: Path) -> None:
    """Make a library whose faces are in no group yet."""
    make_library(root)
    with Library.open(root / "library") as library, library._database.writing() as db:
        db.execute("DELETE FROM group_members")
        db.execute("DELETE FROM face_groups")


def group_of(library: Library, photo: str) -> str:
    """Return the group of the first face of a photo."""
    return next(
        g.id for g in library.groups.page() if f"{photo}#0" in map(face_name, library.groups.members(g.id))
    )


def name_ben(library: Library, photos: Path) -> None:
    if "Ben" not in library.people:
        library.groups.name(group_of(library, "b.jpg"), "Ben")


def hide_stranger(library: Library, photos: Path) -> None:
    group = group_of(library, "b.jpg")
    if not library.groups.get(group).hidden:
        library.groups.hide([group])


def make_named(root: Path) -> None:
    """Make a library in which the group of Ben was named."""
    make_library(root)
    with Library.open(root / "library") as library:
        name_ben(library, photos_folder())


def undo_name(library: Library, photos: Path) -> None:
    if "Ben" in library.people:
        library.people.undo()


def make_damaged(root: Path) -> None:
    make_library(root)
    with sqlite3.connect(root / "library" / "library.db") as db:
        db.execute("UPDATE people SET added = 7")
    db.close()
    (root / "library" / "index" / "catalog.sqlite").write_bytes(b"no database any more")


def repair(root: Path) -> None:
    Library.repair(root / "library")


def repaired(root: Path) -> dict[str, Any]:
    repair(root)  # wherever it was cut short, it can be done again
    return library_contents(root)


def make_backup(root: Path) -> None:
    """Make a library and a backup of an earlier state of it."""
    make_library(root)
    with Library.open(root / "library") as library:
        library.backup(root / "backup")
        library.people.rename("Anna", "Anne")
        library.forget([photos_folder() / "old" / "b.jpg"])


def back_up(root: Path) -> None:
    with Library.open(root / "library") as library:
        library.backup(root / "backup")


def backup_contents(root: Path) -> dict[str, Any]:
    with Library.open(root / "backup") as library:
        return library_state(library)


def reembed(root: Path) -> None:
    """Describe the faces by a model of another dimension."""
    if Library.reembed(root / "library", str(photos_folder() / "small.toml"), workers=0).interrupted:
        raise KeyboardInterrupt
    acknowledgement.given = True


def described(root: Path) -> dict[str, Any]:
    with Library.open(root / "library") as library:
        examples = [e.descriptor.tobytes() for p in library.people for e in library.people.examples(p.name)]
        return library_state(library) | {"model": library.settings.descriptor, "examples": examples}


LIBRARY_SCENARIOS: dict[str, Scenario] = {
    "library-create": Scenario(lambda root: None, create_library, created_library),
    "library-index": on_library(index_new, False),
    "library-forget": on_library(forget, False),
    "library-person": on_library(add_ben),
    "library-rename": on_library(rename_anna),
    "library-remove": on_library(remove_anna, False),
    "library-undo": on_library(undo_merge, make=make_merged),
    "library-forget-removed": on_library(forget, False, make_removed),
    "library-group": on_library(
        lambda library, photos: library.groups.update(again=True), make=make_ungrouped
    ),
    "library-name-group": on_library(name_ben),
    "library-undo-name": on_library(undo_name, make=make_named),
    "library-hide-group": on_library(hide_stranger),
    "library-repair": Scenario(make_damaged, repair, repaired),
    "library-backup": Scenario(make_backup, back_up, backup_contents),
    "library-reembed": Scenario(make_library, reembed, described),
}
