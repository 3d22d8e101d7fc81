"""What is compared of two pictures: a tiny copy, and histograms of brightness and colour in its blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.video.look import Look

_WIDTH, _HEIGHT = 64, 36
_ACROSS, _DOWN = 4, 3
_BINS = (12, 6, 6)  # of brightness, redness, blueness


@dataclass(frozen=True, eq=False, slots=True)
class Signature:
    """A look in short: `tiny` is (36, 64, 3), `histograms` (blocks, bins) with sum 1 for each block."""

    time: float
    tiny: NDArray[np.float32]
    histograms: NDArray[np.float32]

    @property
    def contrast(self) -> float:
        """The spread of brightness, 0 to 127: next to nothing in a black picture."""
        return float(self.tiny[..., 0].std())

    def distance(self, other: Signature) -> float:
        """Return how different two looks are, 0 to 1: movement changes little, another scene much."""
        return float(np.abs(self.histograms - other.histograms).sum()) / (2 * len(self.histograms))


def signature(look: Look) -> Signature:
    """Return the signature of a look."""
    import cv2

    step = max(1, min(look.frame.shape[0] // (2 * _HEIGHT), look.frame.shape[1] // (2 * _WIDTH)))
    small = cv2.resize(
        np.ascontiguousarray(look.frame[::step, ::step]), (_WIDTH, _HEIGHT), interpolation=cv2.INTER_AREA
    )
    tiny = np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2YCrCb), np.float32)
    blocks = tiny.reshape(_DOWN, _HEIGHT // _DOWN, _ACROSS, _WIDTH // _ACROSS, 3).transpose(0, 2, 1, 3, 4)
    pixels = blocks.reshape(_DOWN * _ACROSS, -1, 3)
    parts = []
    for channel, bins in enumerate(_BINS):
        # Colours keep near the middle: their bins cover the middle half.
        low, high = (0.0, 256.0) if channel == 0 else (64.0, 192.0)
        number = np.clip((pixels[..., channel] - low) * (bins / (high - low)), 0, bins - 1)
        parts.append(_soft_histogram(number, bins))
    return Signature(look.time, tiny, (np.concatenate(parts, axis=1) / len(_BINS)).astype(np.float32))


def _soft_histogram(values: NDArray[np.float32], bins: int) -> NDArray[np.float32]:
    """Return shares of bins by row; a value between two counts for both, so that small changes stay small."""
    low = np.minimum(values.astype(np.int64), bins - 1)
    rest = (values - low).astype(np.float32)
    found = np.zeros((len(values), bins + 1), np.float32)
    rows = np.broadcast_to(np.arange(len(values))[:, None], low.shape)
    np.add.at(found, (rows, low), 1 - rest)
    np.add.at(found, (rows, low + 1), rest)
    found[:, bins - 1] += found[:, bins]
    return np.asarray(found[:, :bins] / values.shape[1], np.float32)
