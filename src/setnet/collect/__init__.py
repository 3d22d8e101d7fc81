"""A labelled data set of people together, made out of an archive of photos with captions (section 4)."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
