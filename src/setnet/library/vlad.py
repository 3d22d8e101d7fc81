"""One vector for a whole photo, alike for its copies: a VLAD of SIFT descriptors on a grid.

No interest points are looked for. Every patch is upright and of one size, so the histograms of all of them
are sums over the same eight maps of gradients: several times as fast as one patch at a time. The
descriptors of the mirrored photo are the same numbers in another order. The words of local descriptors and
the axes of VLADs were learnt once from photos and are shipped with setnet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

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
    import cv2

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
    import cv2

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
    found[found.sum(axis=(2, 3, 4)) < 16 * CELL * CELL * _FLAT] = 0
    return _unit_patches(np.minimum(_unit_patches(found), _LARGEST_SHARE))


def mirrored(descriptors: Floats) -> Floats:
    """Return the descriptors that the mirrored photo has."""
    opposite = (ORIENTATIONS // 2 - np.arange(ORIENTATIONS)) % ORIENTATIONS
    return descriptors[:, ::-1, :, ::-1][..., opposite]


def _places(length: int) -> NDArray[np.int64]:
    """Return the middles of patches along a side, alike from both ends."""
    each_way = (length // 2 - 2 * CELL) // STEP
    return length // 2 + STEP * np.arange(-each_way, each_way + 1)


def _unit_patches(found: Floats) -> Floats:
    norms = np.sqrt(np.einsum("rcyxo,rcyxo->rc", found, found))
    return np.asarray(found / np.maximum(norms, 1e-6)[..., None, None, None], np.float32)


WORDS = 64
WORD_DIM = 64
VLAD_DIM = 256
SHIPPED = "vocabulary.npz"


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """What turns local descriptors into a short VLAD."""

    # (128,) and (128, `WORD_DIM`): the PCA of local descriptors
    mean: Floats
    axes: Floats
    words: Floats  # (`WORDS`, `WORD_DIM`) centres of k-means
    # (n,) and (n, `VLAD_DIM`) with n = `WORDS` x `WORD_DIM`: the PCA of VLADs, half whitened
    vlad_mean: Floats
    vlad_axes: Floats

    def long_vlad(self, patches: Floats) -> Floats:
        """Return the VLAD of (n, 128) local descriptors: for each word, the sum of what patches differ by.

        The part of each word is scaled to unit length, so that a pattern that fills a photo counts once.
        """
        patches = root_sift(patches[patches.any(axis=1)])
        short = (patches - self.mean) @ self.axes
        nearest = np.argmax(short @ self.words.T - 0.5 * (self.words**2).sum(axis=1), axis=1)
        member = (nearest == np.arange(len(self.words))[:, None]).astype(np.float32)
        sums = member @ short - member.sum(axis=1, keepdims=True) * self.words
        return np.asarray(unit_vectors(unit_vectors(sums).ravel()), np.float32)

    def vlad(self, patches: Floats) -> Floats:
        """Return the short VLAD of (n, 128) local descriptors, at unit length; zeros if none has contrast."""
        long = self.long_vlad(patches)
        short = unit_vectors((long - self.vlad_mean) @ self.vlad_axes)
        return np.asarray(short if long.any() else np.zeros_like(short), np.float32)


@cache
def shipped_vocabulary() -> Vocabulary:
    """Return the vocabulary that comes with setnet."""
    with (
        files(__package__).joinpath(SHIPPED).open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        return Vocabulary(**{name: arrays[name].astype(np.float32) for name in arrays.files})


def root_sift(patches: Floats) -> NDArray[np.float32]:
    """Return RootSIFT: square roots of histograms that add up to one."""
    return np.asarray(np.sqrt(patches / np.maximum(patches.sum(axis=1, keepdims=True), 1e-6)), np.float32)


def unit_vectors(vectors: NDArray[Any]) -> Floats:
    """Return vectors at unit length; zeros stay zeros."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6))


def photo_vlads(pixels: NDArray[np.uint8]) -> Floats:
    """Return two rows: the VLAD of an RGB photo at unit length, and that of the same photo mirrored.

    They are zeros for a photo without contrast.
    """
    found = dense_sift(small_grey(pixels))
    vocabulary = shipped_vocabulary()
    return np.stack([vocabulary.vlad(patches.reshape(-1, DIM)) for patches in (found, mirrored(found))])
