"""Cursors: the next page of an answer, sealed so that only this server's own are accepted."""

from __future__ import annotations

import base64
import binascii
import secrets
import struct
from hashlib import blake2b
from typing import NamedTuple

from setnet.errors import InvalidInputError

_PLACE = struct.Struct(">IQ")
_SEAL = 16


def digest_of(query: str) -> bytes:
    """Return a digest of everything in a query but its page."""
    return blake2b(query.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Place(NamedTuple):
    """Where a page begins, and the library's commit that its answer was ranked at."""

    offset: int
    commit: int


class Cursors:
    """Writes and reads the cursors of one server.

    A cursor names a place in the answer to one query, and nothing that is not in that answer: its seal
    covers the query, so that it fits no other, and is made with a key that no client has.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def at(self, place: Place, digest: bytes) -> str:
        """Return the cursor for a page.

        >>> cursors = Cursors()
        >>> cursors.place_in(cursors.at(Place(50, 7), b"query"), b"query")
        Place(offset=50, commit=7)
        """
        packed = _PLACE.pack(*place)
        return base64.urlsafe_b64encode(packed + self._seal(packed, digest)).decode()

    def place_in(self, cursor: str, digest: bytes) -> Place:
        """Return the place in a cursor of the same query; another one is an error."""
        try:
            data = base64.b64decode(cursor.encode(), b"-_", validate=True)
        except (binascii.Error, ValueError):
            data = b""
        packed, seal = data[: _PLACE.size], data[_PLACE.size :]
        if not secrets.compare_digest(seal, self._seal(packed, digest)):
            raise InvalidInputError(
                "the cursor does not belong to this query, or comes from before the server's last start: "
                "leave it out to start again"
            )
        return Place._make(_PLACE.unpack(packed))

    def _seal(self, packed: bytes, digest: bytes) -> bytes:
        return blake2b(packed + digest, key=self._key, digest_size=_SEAL).digest()
