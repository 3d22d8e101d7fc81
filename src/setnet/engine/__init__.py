"""Vectors on disk become ranked hits: store, kernels, exact, fast and set search."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
