"""Sets of descriptors become one set vector each: SetNet heads, the mean and other aggregators."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
