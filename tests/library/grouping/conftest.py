"""Libraries of invented photos, and what their groups are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import invented_photos
from setnet.library import Library

Shown = Callable[[], dict[str, tuple[str | None, set[str]]]]


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Library]:
    """A library without photos."""
    with Library.create(tmp_path / "library") as library:
        yield library


@pytest.fixture
def grouped(empty: Library) -> Library:
    """Photos a0 to a5 of people 1 and 2, b0 to b3 of person 3, c0 of person 4; grouped: g1 to g4."""
    invented_photos.store(empty, {f"a{n}": [1, 2] for n in range(6)}, taken=1.5e9)
    invented_photos.store(empty, {f"b{n}": [3] for n in range(4)} | {"c0": [4]})
    assert empty.discover().groups == 4
    return empty


@pytest.fixture
def groups_in() -> Callable[[Library], dict[str, tuple[str | None, set[str]]]]:
    """Return the function that gives the name and the faces of each group, a face as photo and person."""

    def found(library: Library) -> dict[str, tuple[str | None, set[str]]]:
        return {
            group.id: (
                group.name,
                {
                    f"{face.path.decode().rpartition('/')[2]} {round(face.box.x0 / 100)}"
                    for face in library.groups.members(group.id)
                },
            )
            for group in library.groups.page()
        }

    return found
