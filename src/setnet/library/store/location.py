"""Where a library is kept by default."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

__all__ = ["default_library"]


def default_library() -> Path:
    """Return `SETNET_LIBRARY`, else `setnet/library` in the user's data folder of this system."""
    chosen = os.environ.get("SETNET_LIBRARY")
    return Path(chosen).expanduser() if chosen else user_data_path("setnet", appauthor=False) / "library"
