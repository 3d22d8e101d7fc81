"""SIFT descriptors on a grid over the whole photo, without looking for interest points.

Every patch is upright and of one size, so the histograms of all of them are sums over the same eight maps of
gradients: several times as fast as one patch at a time. The descriptors of the mirrored photo are the same
numbers in another order.
"""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Grey = NDArray[np.uint8]

SIDE = 161  # a square photo is described at this size, others at the same area
STEP = 8  # pixels between two patches
CELL = 6  # pixels of a cell; 4 x 4 of them are a patch
ORIENTATIONS = 8
DIM = 4 * 4 * ORIENTATIONS
_SHORTEST = 49  # room for patches in a photo that is very long
_LARGEST_SHARE = 0.2  # of one number in a descriptor: Lowe's guard against glare
_FLAT = 4.0  # mean gradient of a cell below which a patch is noise: sky, walls
_OFFSETS = np.array([-3, -1, 1, 3]) * (CELL // 2)  # of the cells' centres from the patch's


def small_grey(pixels: NDArray[np.uint8]) -> Grey:
    """Return a photo in grey at the size at which it is described: odd sides, so that it has a middle."""
    rows, columns = pixels.shape[:2]
    scale = SIDE / (rows * columns) ** 0.5
    height, width = (max(_SHORTEST, round(n * scale)) // 2 * 2 + 1 for n in (rows, columns))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    return cast(Grey, cv2.resize(grey, (width, height), interpolation=way))


def dense_sift(grey: Grey) -> Floats:
    """Return the descriptors of a grid of patches, (rows, columns, 4, 4, 8), each at unit length.

    A patch without contrast has zeros. The last three axes are cells from the top, cells from the left and
    orientations of the gradient, from pointing right on, clockwise.
    """
    smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 0.8)
    across, down = (cv2.Sobel(smooth, cv2.CV_32F, dx, 1 - dx, ksize=1) for dx in (1, 0))
    strength, turn = cv2.cartToPolar(across, down)
    turn *= np.float32(ORIENTATIONS / (2 * np.pi))
    weights = 1 - abs(np.arange(1 - CELL, CELL, dtype=np.float32)) / CELL  # shared out to neighbouring cells
    rows, columns = (_places(n)[:, None] + _OFFSETS for n in grey.shape)
    found = np.empty((len(rows), len(columns), 4, 4, ORIENTATIONS), np.float32)
    for number in range(ORIENTATIONS):
        away = abs(turn - number)
        share = strength * np.maximum(0, 1 - np.minimum(away, ORIENTATIONS - away))
        sums = cv2.sepFilter2D(share, -1, weights, weights, borderType=cv2.BORDER_REFLECT_101)
        found[..., number] = sums[rows[:, None, :, None], columns[None, :, None, :]]
    return _normalised(found)


def mirrored(descriptors: Floats) -> Floats:
    """Return the descriptors that the mirrored photo has."""
    opposite = (ORIENTATIONS // 2 - np.arange(ORIENTATIONS)) % ORIENTATIONS
    return descriptors[:, ::-1, :, ::-1][..., opposite]


def _places(length: int) -> NDArray[np.int64]:
    """Return the middles of patches along a side, alike from both ends."""
    each_way = (length // 2 - 2 * CELL) // STEP
    return length // 2 + STEP * np.arange(-each_way, each_way + 1)


def _normalised(found: Floats) -> Floats:
    flat = found.sum(axis=(2, 3, 4)) < 16 * CELL * CELL * _FLAT
    found[flat] = 0
    return _unit(np.minimum(_unit(found), _LARGEST_SHARE))


def _unit(found: Floats) -> Floats:
    norms = np.sqrt(np.einsum("rcyxo,rcyxo->rc", found, found))
    return np.asarray(found / np.maximum(norms, 1e-6)[..., None, None, None], np.float32)
