"""What differs in `make soak`, where trials are long."""

from __future__ import annotations

import os

IS_SOAK = bool(os.environ.get("SETNET_SOAK"))


def examples(number: int) -> int:
    """Return how many examples of a property are tried: so many, and twenty times as many in `make soak`."""
    return 20 * number if IS_SOAK else number
