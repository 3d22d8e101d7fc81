"""Cuts and resizes images with OpenCV."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]


def resized(pixels: Pixels, width: int, height: int) -> Pixels:
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


def cut(pixels: Pixels, x0: int, y0: int, x1: int, y1: int, *, repeat_edge: bool = False) -> Pixels:
    """Return the rectangle; what lies outside the image is black, or repeats the image's edge.

    >>> cut(np.full((2, 2, 3), 7, np.uint8), -1, 0, 2, 1)[..., 0]
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
