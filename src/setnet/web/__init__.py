"""The web page and the REST API over a photo library."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setnet.errors import missing_extra

__all__ = [
    "WebSettings",
    "create_app",
    "serve",
    "serve_annotation",
]

if TYPE_CHECKING:
    from setnet.web.annotation import serve_annotation
    from setnet.web.app import create_app
    from setnet.web.server import serve
    from setnet.web.settings import WebSettings
else:
    # name: the module that defines it, imported on first use
    _MODULES = {
        "WebSettings": "settings",
        "create_app": "app",
        "serve": "server",
        "serve_annotation": "annotation",
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = import_module(f"{__name__}.{_MODULES[name]}")
        except ModuleNotFoundError as error:
            raise missing_extra(__name__, error) or error from None
        value = globals()[name] = getattr(module, name)
        return value

    def __dir__() -> list[str]:
        return __all__
