"""A change that faults are injected into: what is there before, what is done, what is there now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Scenario"]


@dataclass(frozen=True)
class Scenario:
    """How to make the base in an empty folder, how to change it, and what it holds.

    A change is atomic: whatever happens, `contents` is that of before or that of after, and doing it again
    leads to after.
    """

    make: Callable[[Path], None]
    change: Callable[[Path], None]
    contents: Callable[[Path], Any]
