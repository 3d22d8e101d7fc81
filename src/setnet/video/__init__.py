"""Videos to shots to people: decode, find the limits of shots, follow faces, one element per person."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
