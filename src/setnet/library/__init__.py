"""A photo library over the engine: scanning, incremental update, people, queries with conditions."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
