"""Copies of the photos that were found, and links to them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from setnet.cli.search.result_files import copy_photos, link_photos, print_csv, print_paths
from setnet.errors import StorageError


def hits(*photos: Path) -> Any:
    return [SimpleNamespace(path=photo) for photo in photos]


@pytest.fixture
def photos(tmp_path: Path) -> tuple[Path, Path]:
    """Two photos with the same name in two folders."""
    for year in ("2019", "2020"):
        (tmp_path / year).mkdir()
        (tmp_path / year / "both.jpg").write_text(year)
    return tmp_path / "2019" / "both.jpg", tmp_path / "2020" / "both.jpg"


@pytest.mark.parametrize("put", [copy_photos, link_photos])
def test_photos_of_one_name_are_numbered_and_a_second_time_changes_nothing(
    put: Callable[[Any, Path], bool], photos: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "both.jpg").write_text("somebody else's")
    for _ in range(2):
        assert put(hits(*photos), out)
        texts = {path.name: path.read_text() for path in out.iterdir()}
        assert texts == {"both.jpg": "somebody else's", "both (2).jpg": "2019", "both (3).jpg": "2020"}


def test_a_photo_that_is_gone_does_not_stop_the_others(photos: tuple[Path, Path], tmp_path: Path) -> None:
    photos[0].unlink()
    out = tmp_path / "out"
    out.mkdir()
    assert not copy_photos(hits(*photos), out)
    assert [path.read_text() for path in out.iterdir()] == ["2020"]


@pytest.mark.parametrize("step", ["copy2", "replace"])
def test_a_full_disk_leaves_no_half_of_a_copy(
    step: str, photos: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*{"copy2": (shutil, "copy2"), "replace": (Path, "replace")}[step], full)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*both\.jpg: No space left on device"):
        copy_photos(hits(*photos), out)
    assert not list(out.iterdir())


@pytest.mark.parametrize("is_terminal", [False, True])
def test_control_characters_go_to_programs_but_not_to_a_terminal(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = Path("/photos/a\x1b[31m\nb.jpg")
    photo = SimpleNamespace(stored_path=os.fsencode(path))
    facts = {"faces": 1, "taken": None}
    hit: Any = SimpleNamespace(photo=photo, path=path, score=1.0, matches=(), to_dict=lambda: facts)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    print_paths([hit])
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == (
        b"/photos/a\\x1b[31m\\nb.jpg\n" if is_terminal else os.fsencode(path) + b"\n"
    )
    print_csv([hit])
    sys.stdout.flush()
    assert (b"\x1b" in capfdbinary.readouterr().out) is not is_terminal
