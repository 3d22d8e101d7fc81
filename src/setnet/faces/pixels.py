"""Pixels of a photo: cutting and resizing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

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


Pixels = npt.NDArray[np.uint8]


def resize(pixels: Pixels, width: int, height: int) -> Pixels:
    """Return the image at another size, without the moire that skipping pixels would cause.

    Whole blocks of pixels are averaged first and the rest, less than a halving, is interpolated:
    OpenCV averages whole blocks ten times faster than broken ones. Up to a block less one pixel
    at the right and the lower edge goes unseen.
    """
    import cv2

    block = min(pixels.shape[1] // width, pixels.shape[0] // height)
    if block >= 2:
        columns, rows = pixels.shape[1] // block, pixels.shape[0] // block
        whole = pixels[: rows * block, : columns * block]
        pixels = cast(Pixels, cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA))
    if pixels.shape[:2] == (height, width):
        return pixels
    return cast(Pixels, cv2.resize(pixels, (width, height), interpolation=cv2.INTER_LINEAR))


def crop_pixels(pixels: Pixels, x0: int, y0: int, x1: int, y1: int, *, repeat_edge: bool = False) -> Pixels:
    """Return the rectangle; what lies outside the image is black, or repeats the image's edge.

    >>> crop_pixels(np.full((2, 2, 3), 7, np.uint8), -1, 0, 2, 1)[..., 0]
    array([[0, 7, 7]], dtype=uint8)
    """
    import cv2

    rows, columns = pixels.shape[:2]
    outside = (max(-y0, 0), max(y1 - rows, 0), max(-x0, 0), max(x1 - columns, 0))
    inside = pixels[max(y0, 0) : max(min(y1, rows), 0), max(x0, 0) : max(min(x1, columns), 0)]
    if not any(outside):
        return inside
    if inside.size == 0:
        return np.zeros((y1 - y0, x1 - x0, 3), np.uint8)
    border = cv2.BORDER_REPLICATE if repeat_edge else cv2.BORDER_CONSTANT
    return cast(Pixels, cv2.copyMakeBorder(inside, *outside, border))
