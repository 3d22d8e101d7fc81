"""Converts decoded images of any mode (grey, palette, CMYK, 16 bit, transparent) to RGB bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from PIL.Image import Image


def rgb_pixels(image: Image, orientation: int = 1) -> npt.NDArray[np.uint8]:
    """Return a decoded image as (height, width, 3) uint8, turned upright; transparency shows white."""
    from PIL.Image import Transpose, fromarray, new

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    if image.mode[0] in "IF":
        image = fromarray(_eight_bits(np.asarray(image)))
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        layer = image.convert("RGBA")
        image = new("RGB", layer.size, (255, 255, 255))
        image.paste(layer, mask=layer)
    elif image.mode == "LAB":
        image = _from_lab(image)
    elif image.mode != "RGB":
        image = image.convert("RGB")
    if orientation in turns:
        image = image.transpose(turns[orientation])
    return np.ascontiguousarray(image)


def _from_lab(image: Image) -> Image:
    from PIL import ImageCms

    lab, srgb = (ImageCms.ImageCmsProfile(ImageCms.createProfile(name)) for name in ("LAB", "sRGB"))
    return ImageCms.ImageCmsTransform(lab, srgb, "LAB", "RGB").apply(image)


def _eight_bits(values: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    """Return deep grey values as bytes: 16 bits by their range, other depths by their own."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        numbers = np.nan_to_num(values.astype(np.float64))
    low, high = float(numbers.min()), float(numbers.max())
    if np.issubdtype(values.dtype, np.integer) and low >= 0 and high <= 65535:
        low, high = 0.0, 255.0 if values.dtype.itemsize > 2 and high <= 255 else 65535.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    span = high - low or 1.0
    return np.rint((numbers - low) * (255.0 / span)).astype(np.uint8)
