"""Find the items that contain a given set: photos of these people, all of them first."""

from typing import TYPE_CHECKING

from setnet.lazy import lazy_names

__all__ = [
    "Hit",
    "Library",
    "Match",
    "SetIndex",
    "SetNet",
    "SetNetError",
    "__version__",
]

__version__ = "0.1.0"

if TYPE_CHECKING:
    from setnet.engine import Hit, Match, SetIndex
    from setnet.errors import SetNetError
    from setnet.heads import SetNet
    from setnet.library import Library
else:
    __getattr__, __dir__ = lazy_names(__name__)
