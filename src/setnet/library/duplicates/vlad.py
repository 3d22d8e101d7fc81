"""One vector for a whole photo, alike for its copies: a VLAD of dense SIFT descriptors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.library.duplicates.dense_sift import DIM, Floats, dense_sift, mirrored, small_grey
from setnet.library.duplicates.vocabulary import shipped_vocabulary


def photo_vlad(pixels: NDArray[np.uint8]) -> Floats:
    """Return the VLAD of an RGB photo: 256 numbers at unit length, zeros for a photo without contrast."""
    plain, _ = photo_vlads(pixels)
    return np.asarray(plain, np.float32)


def photo_vlads(pixels: NDArray[np.uint8]) -> Floats:
    """Return two rows: the VLAD of an RGB photo, and that of the same photo mirrored."""
    found = dense_sift(small_grey(pixels))
    vocabulary = shipped_vocabulary()
    return np.stack([vocabulary.vlad(patches.reshape(-1, DIM)) for patches in (found, mirrored(found))])
