"""Find the items that contain a given set: photos of these people, all of them first."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setnet.errors import SetNetError
    from setnet.index import Hit, Match, Report, SetIndex, Stats
    from setnet.library import Library
    from setnet.sets import SetNet, heads

__version__ = "0.1.0"

# Names are imported on first use: a command line must not pay for what it does not call.
_HOME = {
    "Hit": "setnet.index",
    "Library": "setnet.library",
    "Match": "setnet.index",
    "Report": "setnet.index",
    "SetIndex": "setnet.index",
    "SetNet": "setnet.sets",
    "SetNetError": "setnet.errors",
    "Stats": "setnet.index",
    "heads": "setnet.sets",
}

__all__ = [
    "Hit",
    "Library",
    "Match",
    "Report",
    "SetIndex",
    "SetNet",
    "SetNetError",
    "Stats",
    "__version__",
    "heads",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'setnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
