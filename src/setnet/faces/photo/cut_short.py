"""JPEG files that end too early: what was written before the end is still a picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

_END = b"\xff\xd9"
_NO_MARKERS = frozenset((0x00, 0xFF, *range(0xD0, 0xD8)))  # after 0xFF these are part of the picture's data
_ATTEMPTS = 3
_BLOCKS = 16  # rows that are decoded together; of the first ones nothing may be right


def ended(data: bytes) -> Iterator[bytes]:
    """Yield a JPEG file with an end, after which its decoder fills what is missing instead of giving up.

    A file may be cut inside a table between two parts of the picture, which would swallow the end: the next
    attempts leave out what follows the last markers.
    """
    yield data + _END
    at, found = len(data), 0
    while found < _ATTEMPTS and (at := data.rfind(b"\xff", 0, at)) > 0:
        if at + 1 < len(data) and data[at + 1] not in _NO_MARKERS:
            found += 1
            yield data[:at] + _END


def cut_short_note(image: Image) -> str | None:
    """Return what to tell about a decoded JPEG that was cut short; None if nothing of it can be seen.

    Missing blocks are decoded as one flat colour. A progressive file has the whole picture early on, and
    lacks detail.
    """
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    differs = (pixels != pixels[-1, -1]).any(axis=(1, 2))
    rows = len(differs) - int(np.argmax(differs[::-1])) if differs.any() else 0
    if rows <= min(_BLOCKS, len(differs) - 1):
        return None
    missing = 1.0 - rows / len(differs)
    lost = f"the last {missing:.0%} of the picture are" if missing >= 0.01 else "some of its detail is"
    return f"cut short: {lost} missing, the rest was read"
