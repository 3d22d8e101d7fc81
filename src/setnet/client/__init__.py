"""A client of the REST API with the types of its answers: `Client("http://localhost:8422").search(["Anna"])`."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="client")
