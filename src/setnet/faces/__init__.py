"""Photos to faces to descriptors: open, detect, align, describe; and the registry of models."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
