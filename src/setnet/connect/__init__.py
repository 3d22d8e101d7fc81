"""What others keep: a user's own PostgreSQL, the faces of an Immich server, face tags of other programs."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="postgres")
