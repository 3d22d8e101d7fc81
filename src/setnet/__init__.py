"""Find the items that contain a given set: photos of these people, all of them first."""

from setnet.lazy import lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy(__name__)
__all__ += ["__version__"]
