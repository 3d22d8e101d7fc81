"""The paper's experiments: measures, worlds, and one function per experiment."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="evaluate")
