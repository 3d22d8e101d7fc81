"""Perceptual hashes, to compare near-duplicate search with: small versions of what others use."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.float32]
Pixels = NDArray[np.uint8]


def phash_64(pixels: Pixels) -> Bits:
    """The usual pHash: signs of the 8 x 8 lowest frequencies of a 32 x 32 photo."""
    return _signs(_frequencies(pixels, 32)[:8, :8])


def phash_256(pixels: Pixels) -> Bits:
    """The same with the 16 x 16 lowest frequencies of a 64 x 64 photo."""
    return _signs(_frequencies(pixels, 64)[:16, :16])


def pdq_like(pixels: Pixels) -> Bits:
    """As PDQ does: smoothed by two box filters, frequencies 1 to 16 each way, without the constant ones."""
    box = max(1, min(pixels.shape[:2]) // 64)
    smooth = cv2.blur(cv2.blur(pixels, (box, box)), (box, box))
    return _signs(_frequencies(np.asarray(smooth, np.uint8), 64)[1:17, 1:17])


HASHES = {"pHash, 64 bit": phash_64, "pHash, 256 bit": phash_256, "PDQ-like, 256 bit": pdq_like}


def _frequencies(pixels: Pixels, side: int) -> NDArray[np.float32]:
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.dct(small.astype(np.float32)), np.float32)


def _signs(frequencies: NDArray[np.float32]) -> Bits:
    """Return bits as +1 and -1 at unit length: their product is 1 - 2 x the share of bits that differ."""
    values = frequencies.ravel()
    return np.where(values > np.median(values), 1.0, -1.0).astype(np.float32) / np.float32(len(values) ** 0.5)
