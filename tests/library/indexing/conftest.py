"""Photos for index runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def many(tmp_path: Path, compose: Callable[..., None]) -> Path:
    """Two dozen photos, no two alike."""
    for number in range(24):
        people = ("P001", "P003")[: 1 + number % 2]
        taken = f"2016:01:{number + 1:02} 12:00:00"
        compose(tmp_path / "many" / f"{number:02}.jpg", people, tile=number % 14, taken=taken)
    return tmp_path / "many"
