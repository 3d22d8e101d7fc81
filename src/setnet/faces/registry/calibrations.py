"""What similarities mean under each descriptor model: constants that belong to a model as its files do."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("calibrations.toml")
_OTHERS = "others"


def calibration_of(model: str) -> Mapping[str, float]:
    """Return the constants of a descriptor model; those of an ordinary one when none were fitted to it."""
    tables = _tables()
    return tables.get(model, tables[_OTHERS])


@cache
def _tables() -> dict[str, dict[str, float]]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
