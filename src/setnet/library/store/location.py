"""Where a library is kept when nobody says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["default_library"]


def default_library() -> Path:
    """Return `SETNET_LIBRARY`, else `setnet/library` in the user's data folder of this system."""
    chosen = os.environ.get("SETNET_LIBRARY")
    if chosen:
        return Path(chosen).expanduser()
    return _data_folder() / "setnet" / "library"


def _data_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if os.name == "nt" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
