"""Other people's stores: set vectors in a user's own PostgreSQL, and the faces of an Immich server."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="postgres")
