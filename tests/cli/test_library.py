"""A user's library breaks in one way after another, and comes back by the commands that the messages name."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import setnet

pytestmark = pytest.mark.xdist_group("recovery")


def answered(library: Path, *words: object) -> Any:
    done = setnet(library, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def kept(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library in which Anna is saved, and its backup."""
    place = tmp_path_factory.mktemp("recovery")
    shutil.copytree(made.library, place / "library")
    added = setnet(place / "library", "people", "add", "Anna", made.photos / "2016" / "alone.jpg")
    assert added.returncode == 0, added.stderr
    done = answered(place / "library", "backup", place / "backup")
    assert (done["photos"], done["people"]) == (5, 1)
    return place


def found(library: Path) -> list[str]:
    return [hit["photo"] for hit in answered(library, "search", "Anna")["hits"]]


def alter(library: Path) -> None:
    with sqlite3.connect(library / "library.db") as db:
        db.execute("UPDATE photos SET width = 1 WHERE id = 1")
    db.close()


def halve(library: Path) -> None:
    os.truncate(library / "library.db", (library / "library.db").stat().st_size // 2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda library: (library / "library.db").unlink(),
        halve,
        alter,
        lambda library: (library / "index" / "catalog.sqlite").unlink(),
        lambda library: next((library / "index" / "segments").iterdir()).unlink(),
        lambda library: (library / "library.journal").unlink(),
    ],
    ids=["no database", "half a database", "an altered row", "no catalogue", "a lost segment", "no journal"],
)
def test_a_damaged_library_is_repaired_and_its_photos_are_found_again(
    kept: Path, made: Any, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    library = tmp_path / "library"
    shutil.copytree(kept / "library", library)
    damage(library)
    check = setnet(library, "check")
    assert check.returncode == 0 or "setnet repair" in check.stderr
    done = setnet(library, "repair", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["lost"] else 0), done.stderr
    assert report["people"] == 1
    assert setnet(library, "index", made.photos, "--workers", 0).returncode in (0, 1)  # one file is broken
    assert setnet(library, "check").returncode == 0
    assert answered(library, "status")["photos"] == 5
    assert sorted(found(library)) == sorted(found(kept / "library"))


def test_a_backup_replaces_a_library_that_is_beyond_repair(kept: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    shutil.copytree(kept / "library", library)
    for name in ("library.db", "library.journal"):
        (library / name).write_bytes(b"nonsense")
    for name in ("index", "copies"):
        shutil.rmtree(library / name, ignore_errors=True)
    done = setnet(library, "repair")
    assert done.returncode == 2
    assert "setnet restore" in done.stderr
    refused = setnet(library, "restore", kept / "backup")
    assert refused.returncode == 2
    assert "--replace" in refused.stderr
    done = setnet(library, "restore", kept / "backup", "--replace")
    assert done.returncode == 0, done.stderr
    assert "5 photos and 1 person" in done.stdout
    assert found(library) == found(kept / "library")
    assert setnet(library, "restore", kept / "backup", "--library", tmp_path / "elsewhere").returncode == 0
    assert found(tmp_path / "elsewhere") == found(kept / "backup")
