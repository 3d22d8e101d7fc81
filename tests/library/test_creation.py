from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from setnet.library import Library

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[bool, set[int]]:
    """Return the modes of folders (True) and files (False) in a folder, itself included."""
    found: dict[bool, set[int]] = {True: set(), False: set()}
    for path in (folder, *folder.rglob("*")):
        found[path.is_dir()].add(path.stat().st_mode & 0o777)
    return found


def test_everything_a_library_writes_is_for_its_owner_alone(library: Library, tmp_path: Path) -> None:
    photo = next(p for p in library.photos.all_photos() if p.faces)
    library.photos.thumbnail(photo.id)
    library.people.add_photos("Anna", [str(photo.path)])
    library.photos.export(tmp_path / "export.npz")
    assert modes(library.path) == {True: {0o700}, False: {0o600}}
    assert (tmp_path / "export.npz").stat().st_mode & 0o777 == 0o600


def test_files_that_others_could_read_are_restricted_with_a_notice(
    library: Library, photos: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library.photos.thumbnail(next(p for p in library.photos.all_photos() if p.faces).id)
    for path in (library.path, *library.path.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    with caplog.at_level(logging.WARNING, "setnet.library"):
        library.index([photos], workers=0)
        library.index([photos], workers=0)
    assert [("could be read by others" in m, "you alone" in m) for m in caplog.messages] == [(True, True)]
    assert modes(library.path) == {True: {0o700}, False: {0o600}}


def test_a_folder_with_other_files_keeps_its_mode(tmp_path: Path, photos: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir(mode=0o755)
    (place / "notes.txt").write_text("mine")
    with Library.create(place, beside_others=True) as library:
        library.index([photos / "2016"], workers=0)
    assert place.stat().st_mode & 0o777 == 0o755
    assert (place / "notes.txt").stat().st_mode & 0o777 == 0o666
    assert (place / "library.db").stat().st_mode & 0o777 == 0o600
