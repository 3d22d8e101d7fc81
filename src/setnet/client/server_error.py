"""The error that the client raises for a request that the server refused."""

from __future__ import annotations

from setnet.errors import SetNetError


class ServerError(SetNetError):
    """A request was refused, or the server cannot be reached.

    Attributes
    ----------
    status
        The HTTP status; 0 when there was no answer.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
