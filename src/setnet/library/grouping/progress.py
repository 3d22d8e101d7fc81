"""How far a grouping is."""

from __future__ import annotations

from collections.abc import Callable

OnProgress = Callable[[str, int, int], None]  # what is being done, how much of it is, of how much
