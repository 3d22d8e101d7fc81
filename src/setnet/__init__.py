"""Find the items that contain a given set: photos of these people, all of them first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setnet.lazy import lazy

if TYPE_CHECKING:
    from setnet.errors import SetNetError
    from setnet.index import Hit, Match, Report, SetIndex, Stats
    from setnet.library import Library
    from setnet.sets import SetNet, heads

__version__ = "0.1.0"

# Names are imported on first use: a command line must not pay for what it does not call.
_HOME = {
    "Hit": "index",
    "Library": "library",
    "Match": "index",
    "Report": "index",
    "SetIndex": "index",
    "SetNet": "sets",
    "SetNetError": "errors",
    "Stats": "index",
    "heads": "sets",
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

__getattr__, __dir__ = lazy(__name__, _HOME)
