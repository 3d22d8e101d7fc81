"""Clips of synthetic people, written once for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clips import Scene, write_clip

SCENES = (
    Scene(("P001", "P003")),
    Scene(("P005",), 2.0, (140, 60, 40)),
    Scene(("P001", "P010"), 2.0, (40, 140, 60)),
)


@pytest.fixture(scope="session")
def clip(_people: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shots of two seconds, with cuts between them."""
    path = tmp_path_factory.mktemp("clips") / "party.mp4"
    write_clip(path, SCENES)
    return path
