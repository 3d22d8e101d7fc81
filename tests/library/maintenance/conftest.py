"""A small library of photos that do not exist, made by the code before checksums."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

FIXTURE = Path(__file__).parents[1] / "fixtures" / "library_v1.zip"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A library that the code before checksums made."""
    with zipfile.ZipFile(FIXTURE) as archive:
        archive.extractall(tmp_path)
    return tmp_path / "library"
