"""The web page and the REST API over a photo library."""

from typing import TYPE_CHECKING

from setnet.lazy import lazy_names

__all__ = [
    "WebSettings",
    "create_app",
    "serve",
    "serve_annotation",
    "serve_collection",
]

if TYPE_CHECKING:
    from setnet.web.annotation import serve_annotation
    from setnet.web.app import create_app
    from setnet.web.server import serve, serve_collection
    from setnet.web.settings import WebSettings
else:
    __getattr__, __dir__ = lazy_names(__name__)
