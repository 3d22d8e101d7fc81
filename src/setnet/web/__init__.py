"""The web page and the REST API over a photo library, and over sets of vectors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setnet.web.app import create_app
    from setnet.web.server.serve import serve
    from setnet.web.settings import WebSettings

# Imported on first use: the settings are needed by commands that must not pay for the framework.
_HOME = {"WebSettings": "settings", "create_app": "app", "serve": "server.serve"}

__all__ = ["WebSettings", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"setnet.web.{_HOME[name]}"), name)
    raise AttributeError(f"module 'setnet.web' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
