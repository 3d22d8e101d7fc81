"""The hash by which a photo or a video is known wherever its file is."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

HASH_BYTES = 16
_WHOLE = 32 << 20  # bytes of a video that is read as a whole
_SAMPLES = 32
_SAMPLE = 1 << 20


def content_hash(data: bytes) -> bytes:
    """Return the hash of a file's bytes."""
    return blake2b(data, digest_size=HASH_BYTES).digest()


def video_hash(path: Path) -> bytes:
    """Return the hash of a video: of its size, and of its bytes or, of a large file, of samples all over it.

    Reading many gigabytes to notice a moved file would take longer than watching some videos.
    """
    found = blake2b(digest_size=HASH_BYTES)
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        found.update(b"video %d " % size)
        if size <= _WHOLE:
            file.seek(0)
            found.update(file.read())
            return found.digest()
        for number in range(_SAMPLES):
            file.seek((size - _SAMPLE) * number // (_SAMPLES - 1))
            found.update(file.read(_SAMPLE))
    return found.digest()
