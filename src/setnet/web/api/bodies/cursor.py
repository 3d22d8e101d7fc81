"""Cursors: the offset of the next page of an answer, bound to its query."""

from __future__ import annotations

import base64
import binascii
import hashlib

from setnet.errors import InvalidInputError

MOST_HITS = 20_000  # the engine ranks all hits up to the page: further down nobody looks


def digest_of(query: str) -> str:
    """Return a short digest of everything in a query but its page."""
    return hashlib.blake2b(query.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def cursor_at(offset: int, digest: str) -> str:
    """Return the cursor for a page.

    >>> offset_in(cursor_at(50, "ab"), "ab")
    50
    """
    return base64.urlsafe_b64encode(f"{offset}.{digest}".encode()).decode()


def offset_in(cursor: str | None, digest: str) -> int:
    """Return the offset in a cursor of the same query."""
    if cursor is None:
        return 0
    try:
        offset, _, of_query = base64.urlsafe_b64decode(cursor.encode()).decode().partition(".")
        place = int(offset) if offset.isascii() and offset.isdecimal() else -1
    except (binascii.Error, ValueError):
        place, of_query = -1, ""
    if not 0 <= place <= MOST_HITS or of_query != digest:
        raise InvalidInputError("the cursor does not belong to this query: leave it out to start again")
    return place
