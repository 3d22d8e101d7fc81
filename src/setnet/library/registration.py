"""Verification of two photos that may be copies: lay one over the other, and compare them piece by piece.

`tasks` are those of a worker process that looks for near-duplicates: describe a photo, compare two photos.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from setnet.faces import open_photo
from setnet.library.photo_reader import with_file
from setnet.library.vlad import SIDE, Floats, Grey, photo_vlads, small_grey
from setnet.sandbox import Message, Tasks

_KEYPOINTS = 250
_RATIO = 0.8  # Lowe's: the second best match must be this much worse
_MIN_MATCHES = 6
_FAR = 3.0  # pixels between a keypoint and where the transform puts its match
_LARGEST_SCALE = 1.8  # a copy shows at least 1 / 1.8 of the other's width, at the size of the description
_BLOCK = 8  # pixels of a piece
_MIN_SHARE = 0.3  # of each photo that the other must cover
_CONTAINED = 0.7  # of one of them: who is cut out of one photo and put into another covers less
_SMOOTH = 0.8
_SAME = 0.95  # correlation from which two pieces are the same
_FLAT = 4.0  # standard deviation of a piece below which it says nothing
# Pieces that show something else; chosen on copies and montages of LFW's training half, and the demo album.
_OTHER = 0.5  # correlation below which two pieces are not the same
_CLEAR = 8.0  # standard deviation from which a piece shows something
_MAX_OTHER = 0.015  # of the pieces where the photos overlap
_BAND = 0.2  # of the height that words may be laid over
_ACROSS = 0.7  # of the pieces of a row in such a band that differ at least


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
    pieces with contrast that are correlated. It is 0 when neither photo contains most of the other, or when
    they show different things somewhere: a photo of the same place with somebody else in it is no copy. A
    band across the photo, over which words may be laid, does not count.
    """
    transform = _transform(one, other)
    if transform is None:
        return 0.0
    height, width = other.grey.shape
    laid = cv2.warpAffine(one.grey, transform, (width, height), borderMode=cv2.BORDER_REPLICATE)
    inside = cv2.warpAffine(np.ones_like(one.grey), transform, (width, height), borderValue=0)
    area = float(np.linalg.det(transform[:, :2])) * one.grey.size
    shares = inside.sum() / area, inside.mean()
    if min(shares) < _MIN_SHARE or max(shares) < _CONTAINED:
        return 0.0
    return _agreeing(laid, other.grey, inside)


def _transform(one: Keypoints, other: Keypoints) -> Any:
    """Return the 2 x 3 transform from one photo to the other, or None when they have none."""
    if min(len(one.places), len(other.places)) < _MIN_MATCHES:
        return None
    pairs = [
        (best.queryIdx, best.trainIdx)
        for best, second in cv2.BFMatcher().knnMatch(one.descriptors, other.descriptors, k=2)
        if best.distance < _RATIO * second.distance
    ]
    if len(pairs) < _MIN_MATCHES:
        return None
    mine, theirs = np.array(pairs).T
    found, agreeing = cv2.estimateAffinePartial2D(
        one.places[mine], other.places[theirs], method=cv2.RANSAC, ransacReprojThreshold=_FAR
    )
    if found is None or agreeing.sum() < _MIN_MATCHES:
        return None
    scale = float(np.hypot(found[0, 0], found[1, 0]))
    return found if 1 / _LARGEST_SCALE < scale < _LARGEST_SCALE else None


def _agreeing(one: NDArray[Any], other: NDArray[Any], inside: NDArray[Any]) -> float:
    smooth = (cv2.GaussianBlur(grey.astype(np.float32), (0, 0), _SMOOTH) for grey in (one, other))
    a, b = (pieces - pieces.mean(axis=2, keepdims=True) for pieces in map(_pieces, smooth))
    whole = _pieces(inside).min(axis=2) > 0
    contrast = [np.sqrt((x * x).mean(axis=2)) for x in (a, b)]
    correlation = (a * b).mean(axis=2) / np.maximum(np.prod(contrast, axis=0), 1e-6)
    textured = whole & (np.maximum(*contrast) > _FLAT)
    clear = whole & (np.maximum(*contrast) > _CLEAR)
    different = clear & (correlation < _OTHER)
    band = _band(different, clear)
    compared = textured & ~band[:, None]
    if not compared.any() or different[~band].sum() > _MAX_OTHER * whole.sum():
        return 0.0
    return float((correlation[compared] > _SAME).mean())


def _band(different: NDArray[np.bool_], clear: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the rows of pieces that words may be laid over: those in a band that hides most differences."""
    found = different.sum(axis=1)
    across = found >= np.maximum(1, _ACROSS * clear.sum(axis=1))
    rows = math.ceil(_BAND * len(found))
    hidden = np.convolve(np.where(across, found, 0), np.ones(rows, np.int64))
    last = int(hidden.argmax())
    places = np.arange(len(found))
    band = across & (places > last - rows) & (places <= last)
    return np.convolve(band, np.ones(3, np.int64), "same") > 0  # its edges lie inside other rows


def _pieces(grey: NDArray[Any]) -> NDArray[Any]:
    """Return the whole blocks of a picture, (rows, columns, pixels)."""
    rows, columns = grey.shape[0] // _BLOCK, grey.shape[1] // _BLOCK
    blocks = grey[: rows * _BLOCK, : columns * _BLOCK].reshape(rows, _BLOCK, columns, _BLOCK)
    return blocks.swapaxes(1, 2).reshape(rows, columns, -1)


@cache
def _sift() -> Any:
    return cv2.SIFT.create(nfeatures=_KEYPOINTS)


_ENOUGH = 4 * SIDE  # pixels on the longer side: also of a photo much longer than wide
_KEPT = 256  # photos whose keypoints are kept, 40 MB: pairs that follow each other share photos


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Return the tasks; OpenCV's own threads would only get in the way of the other processes."""
    import cv2

    cv2.setNumThreads(1)
    return {"describe": partial(with_file, _describe), "compare": _compare}


def _describe(task: Message, data: bytes, fields: dict[str, Any], arrays: dict[str, Any]) -> Message:
    photo = open_photo(data, enough=_ENOUGH)
    return Message(
        "done",
        fields | {"pixels": photo.width * photo.height},
        arrays | {"vlads": photo_vlads(photo.pixels)},
    )


def _compare(task: Message) -> Message:
    one = _keypoints(task.fields["one"], False)
    other = _keypoints(task.fields["other"], bool(task.fields["mirrored"]))
    return Message("done", {"agreement": agreement(one, other)})


@lru_cache(_KEPT)
def _keypoints(path: str, mirrored: bool) -> Keypoints:
    grey = small_grey(open_photo(path, enough=_ENOUGH).pixels)
    return Keypoints.of(np.ascontiguousarray(grey[:, ::-1]) if mirrored else grey)
