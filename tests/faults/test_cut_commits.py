"""A kill in the middle of a commit: what the next open finds is what all later ones find."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from setnet import SetIndex
from setnet.library import Example, Library
from tests.faults.harness import ROOT, program
from tests.support.invented_photos import face_of


def make(kind: str, root: Path) -> Any:
    """Return a store that stays open for reading."""
    if kind == "index":
        with SetIndex.create(root, 2) as index:
            index.add(["old"], [[1.0, 0.0]], [1])
        return SetIndex.open(root, read_only=True)
    with Library.create(root) as library:
        library.people.add("Anna", [Example(face_of(1), "portrait")])
    return Library.open(root)


def held(opened: Any) -> list[str]:
    """Return the ids of an index, or the names of a library."""
    if isinstance(opened, SetIndex):
        return sorted(item.id for item in opened)
    return [person.name for person in opened.people]


@pytest.mark.parametrize("kind", ["index", "library"])
def test_a_commit_that_a_kill_cut_short_is_settled_by_the_next_open(kind: str, tmp_path: Path) -> None:
    root, later = tmp_path / "store", tmp_path / "later"
    with make(kind, root) as reader:
        before = held(reader)
        done = subprocess.run(program("cut_commit", kind, str(root)), cwd=ROOT)
        assert done.returncode == 9
        with (SetIndex if kind == "index" else Library).open(root) as opened:
            assert held(opened) == held(reader) == before
            # what is on the disk after all are killed; by a process of its own, as this one holds locks
            subprocess.run(["cp", "-r", root, later], check=True)
    for shared in later.glob("*-shm"):
        shared.unlink()
    with (SetIndex if kind == "index" else Library).open(later) as opened:
        assert held(opened) == before
        found = opened.check()
        assert (found if isinstance(found, list) else found.problems) == []
