"""Cuts a face out of a photo the way a descriptor model was trained to see it."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from setnet.faces.pixels import Pixels, crop_pixels, resize

# Eyes, nose and mouth corners in a 112 x 112 crop, as ArcFace (Deng et al. 2019) published them.
TEMPLATE: npt.NDArray[np.float64] = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
)


def similarity_transform(source: npt.ArrayLike, target: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the 2 x 3 matrix of rotation, one scale and shift that best maps `source` to `target`.

    >>> similarity_transform([[0, 0], [1, 0]], [[1, 1], [1, 3]]).round(6) + 0.0
    array([[ 0., -2.,  1.],
           [ 2.,  0.,  1.]])
    """
    # With points as complex numbers the least-squares similarity is one complex factor and a shift.
    z = np.asarray(source, np.float64) @ np.array([1, 1j])
    w = np.asarray(target, np.float64) @ np.array([1, 1j])
    z_mean, w_mean = z.mean(), w.mean()
    spread = float(np.sum(np.abs(z - z_mean) ** 2))
    factor = np.vdot(z - z_mean, w - w_mean) / spread if spread > 0 else 1.0 + 0j
    shift = w_mean - factor * z_mean
    return np.array([[factor.real, -factor.imag, shift.real], [factor.imag, factor.real, shift.imag]])


def five_point_scale(landmarks: npt.ArrayLike, size: int = 112) -> float:
    """Return the length in a `five_point_crop` of what is one pixel long in the photo."""
    matrix = similarity_transform(landmarks, TEMPLATE * (size / 112))
    return math.hypot(matrix[0, 0], matrix[1, 0])


def five_point_crop(pixels: Pixels, landmarks: npt.ArrayLike, size: int = 112) -> Pixels:
    """Return the face turned upright in a `size` x `size` crop, its five points on the template."""
    import cv2

    points = np.asarray(landmarks, np.float64)
    matrix = similarity_transform(points, TEMPLATE * (size / 112))
    scale = math.hypot(matrix[0, 0], matrix[1, 0])
    shrink = int(0.5 / scale) if scale > 0 else 1
    if shrink >= 2:
        # Bilinear sampling of a large face would skip most of its pixels: average them first.
        pixels, origin = _shrunk_neighbourhood(pixels, matrix, size, shrink)
        # The centre of the shrunk pixel 0 lies between the pixels it averages.
        matrix = similarity_transform((points - origin - (shrink - 1) / 2) / shrink, TEMPLATE * (size / 112))
    return cast(Pixels, cv2.warpAffine(pixels, matrix, (size, size), flags=cv2.INTER_LINEAR))


def _shrunk_neighbourhood(
    pixels: Pixels, matrix: npt.NDArray[np.float64], size: int, shrink: int
) -> tuple[Pixels, npt.NDArray[np.float64]]:
    import cv2

    inverse = cv2.invertAffineTransform(matrix)
    corners = np.array([[0, 0, 1], [size, 0, 1], [0, size, 1], [size, size, 1]]) @ inverse.T
    low = np.maximum(np.floor(corners.min(0)).astype(int) - 2 * shrink, 0)
    high = np.minimum(np.ceil(corners.max(0)).astype(int) + 2 * shrink, [pixels.shape[1], pixels.shape[0]])
    columns, rows = np.maximum((high - low) // shrink, 1)
    part = pixels[low[1] : low[1] + rows * shrink, low[0] : low[0] + columns * shrink]
    if part.size == 0:
        return pixels[:1, :1], low.astype(np.float64)
    return resize(part, int(columns), int(rows)), low.astype(np.float64)


def box_crop(
    pixels: Pixels, box: tuple[float, float, float, float], size: int = 224, extend: float = 0.3
) -> Pixels:
    """Return the paper's crop: the box extended, its short side resized to `size`, the centre taken.

    The box grows by `extend` of its width and height in all (half on each side), as for VGGFace2;
    what lies outside the photo repeats the photo's edge.
    """
    x0, y0, x1, y1 = box
    # A centre crop of the box resized to a short side of `size` is a square as wide as that side.
    side = max(1, round(min(x1 - x0, y1 - y0) * (1 + extend)))
    left, top = round((x0 + x1 - side) / 2), round((y0 + y1 - side) / 2)
    return resize(crop_pixels(pixels, left, top, left + side, top + side, repeat_edge=True), size, size)
