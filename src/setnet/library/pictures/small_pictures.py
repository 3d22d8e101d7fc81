"""Small pictures: a person's face, a photo's thumbnail."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

    from setnet.faces import Box

_FACE_SIDE = 128
_FACE_MARGIN = 0.35


def face_picture(pixels: NDArray[np.uint8], box: Box, side: int = _FACE_SIDE) -> bytes:
    """Return a square JPEG of a face with some room around it."""
    from PIL import Image

    height, width = pixels.shape[:2]
    half = max(box.x1 - box.x0, box.y1 - box.y0) * (0.5 + _FACE_MARGIN)
    half = max(2.0, min(half, width / 2, height / 2))
    x = min(max((box.x0 + box.x1) / 2, half), width - half)
    y = min(max((box.y0 + box.y1) / 2, half), height - half)
    crop = pixels[int(y - half) : int(y + half), int(x - half) : int(x + half)]
    return jpeg(Image.fromarray(np.ascontiguousarray(crop)).resize((side, side), Image.Resampling.LANCZOS))


def thumbnail(pixels: NDArray[np.uint8], side: int) -> Image:
    """Return the photo made small enough for a square of `side` pixels."""
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return image


def jpeg(image: Image, quality: int = 85) -> bytes:
    """Return the image as a JPEG without metadata."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
