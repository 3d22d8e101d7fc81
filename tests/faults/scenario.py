"""A change that faults are injected into: what is there before, what is done, what is there now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Scenario", "acknowledgement"]


@dataclass(frozen=True)
class Scenario:
    """How to make the base in an empty folder, how to change it, and what it holds.

    A change is atomic: whatever happens, `contents` is that of before or that of after, and doing it again
    leads to after. Of a change with ``is_one_step``, an error other than `OutcomeUnknownError` says that it
    is not stored; one of several steps may be completed by the next run.
    """

    make: Callable[[Path], None]
    change: Callable[[Path], None]
    contents: Callable[[Path], Any]
    is_one_step: bool = False


class Acknowledgement:
    """Whether the call that makes the change has returned: what fails after that cannot take it back."""

    given = False


acknowledgement = Acknowledgement()
