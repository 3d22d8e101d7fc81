"""The web page and the REST API over a photo library."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="serve")
