"""The hash by which a photo is known wherever its file is."""

from __future__ import annotations

from hashlib import blake2b

HASH_BYTES = 16


def content_hash(data: bytes) -> bytes:
    """Return the hash of a file's bytes."""
    return blake2b(data, digest_size=HASH_BYTES).digest()
