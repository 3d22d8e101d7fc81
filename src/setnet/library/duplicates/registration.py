"""Verification of two photos that may be copies: lay one over the other, and compare them piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from setnet.library.duplicates.dense_sift import Floats, Grey

_KEYPOINTS = 250
_RATIO = 0.8  # Lowe's: the second best match must be this much worse
_LEAST_MATCHES = 6
_FAR = 3.0  # pixels between a keypoint and where the transform puts its match
_LARGEST_SCALE = 1.8  # a copy shows at least 1 / 1.8 of the other's width, at the size of the description
_BLOCK = 16  # pixels of a piece
_LEAST_SHARE = 0.3  # of each photo that the other must cover
_SMOOTH = 1.2
_SAME = 0.7  # correlation from which two pieces are the same
_FLAT = 4.0  # standard deviation of a piece below which it says nothing


@dataclass(frozen=True, slots=True, eq=False)
class Keypoints:
    """A small grey photo with its SIFT keypoints."""

    grey: Grey
    places: Floats
    descriptors: Floats

    @classmethod
    def of(cls, grey: Grey) -> Keypoints:
        """Find the keypoints of a photo."""
        found, descriptors = _sift().detectAndCompute(grey, None)
        if descriptors is None:
            return cls(grey, np.empty((0, 2), np.float32), np.empty((0, 128), np.float32))
        return cls(grey, np.array([point.pt for point in found], np.float32), np.sqrt(descriptors))


def agreement(one: Keypoints, other: Keypoints) -> float:
    """Return how much of two photos is the same where they overlap, from 0 to 1.

    A similarity transform found from matching keypoints lays one over the other; the result is the share of
    pieces with contrast that are correlated.
    """
    transform = _transform(one, other)
    if transform is None:
        return 0.0
    height, width = other.grey.shape
    laid = cv2.warpAffine(one.grey, transform, (width, height), borderValue=0)
    inside = cv2.warpAffine(np.ones_like(one.grey), transform, (width, height), borderValue=0)
    if inside.mean() < _LEAST_SHARE:
        return 0.0
    return _agreeing(laid, other.grey, inside)


def _transform(one: Keypoints, other: Keypoints) -> Any:
    """Return the 2 x 3 transform from one photo to the other, or None when they have none."""
    if min(len(one.places), len(other.places)) < _LEAST_MATCHES:
        return None
    pairs = [
        (best.queryIdx, best.trainIdx)
        for best, second in cv2.BFMatcher().knnMatch(one.descriptors, other.descriptors, k=2)
        if best.distance < _RATIO * second.distance
    ]
    if len(pairs) < _LEAST_MATCHES:
        return None
    mine, theirs = np.array(pairs).T
    found, agreeing = cv2.estimateAffinePartial2D(
        one.places[mine], other.places[theirs], method=cv2.RANSAC, ransacReprojThreshold=_FAR
    )
    if found is None or agreeing.sum() < _LEAST_MATCHES:
        return None
    scale = float(np.hypot(found[0, 0], found[1, 0]))
    return found if 1 / _LARGEST_SCALE < scale < _LARGEST_SCALE else None


def _agreeing(one: NDArray[Any], other: NDArray[Any], inside: NDArray[Any]) -> float:
    smooth = [cv2.GaussianBlur(grey.astype(np.float32), (0, 0), _SMOOTH) for grey in (one, other)]
    a, b = (_pieces(grey) for grey in smooth)
    whole = _pieces(inside).min(axis=1) > 0
    a, b = a[whole], b[whole]
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    contrast = [np.sqrt((x * x).mean(axis=1)) for x in (a, b)]
    textured = np.maximum(*contrast) > _FLAT
    if not textured.any():
        return 0.0
    correlation = (a * b).mean(axis=1)[textured] / np.maximum(np.prod(contrast, axis=0)[textured], 1e-6)
    return float((correlation > _SAME).mean())


def _pieces(grey: NDArray[Any]) -> NDArray[Any]:
    """Return the whole blocks of a picture, one in each row."""
    rows, columns = grey.shape[0] // _BLOCK, grey.shape[1] // _BLOCK
    blocks = grey[: rows * _BLOCK, : columns * _BLOCK].reshape(rows, _BLOCK, columns, _BLOCK)
    return blocks.swapaxes(1, 2).reshape(rows * columns, -1)


@cache
def _sift() -> Any:
    return cv2.SIFT.create(nfeatures=_KEYPOINTS)
