"""Find the items that contain a given set: photos of these people, all of them first."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    # name: the module that defines it, imported on first use
    _MODULES = {
        "Hit": "engine",
        "Library": "library",
        "Match": "engine",
        "SetIndex": "engine",
        "SetNet": "heads",
        "SetNetError": "errors",
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return __all__
