"""Shots as sets of frames: descriptors of whole pictures, some for each shot."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import VideoError
from setnet.faces import load_descriptor
from setnet.video.frames import Frame, watch_frames
from setnet.video.shots import Signature, find_cuts, may_be_cut, signature


@dataclass(frozen=True, eq=False, slots=True)
class FrameSets:
    """Frames of a video: (n, dim) descriptors of length 1, their seconds, and which shot each is of."""

    descriptors: NDArray[np.float32]
    times: NDArray[np.float64]
    shots: NDArray[np.int64]


def frame_sets(path: str, descriptor: str, every: float = 1.0) -> FrameSets:
    """Describe pictures of a video by a descriptor model of the registry, whatever it was trained to see.

    Parameters
    ----------
    path
        The file.
    descriptor
        The model; it gets the middle square of each picture.
    every
        Seconds between two pictures that are described, at least.

    Raises
    ------
    VideoError, ModelError
        When there is no picture to see, or the model is missing or wrong.
    """
    model = load_descriptor(descriptor)
    signatures: list[Signature] = []
    times: list[float] = []
    vectors: list[NDArray[np.float32]] = []

    def has_changed(a: Frame, b: Frame) -> bool:
        return may_be_cut(signature(a), signature(b))

    for look in watch_frames(path, 0.0, has_changed):
        signatures.append(signature(look))
        is_cut = len(signatures) > 1 and may_be_cut(signatures[-2], signatures[-1])
        if not times or is_cut or look.time - times[-1] >= every:
            times.append(look.time)
            vectors.append(model.describe([_square(look, model.size)]))
    if not times:
        raise VideoError("holds no picture that can be decoded")
    begins = [cut.begin for cut in find_cuts(signatures)]
    shots = np.array([bisect_right(begins, time) for time in times], np.int64)
    return FrameSets(np.concatenate(vectors), np.array(times), shots)


def _square(look: Frame, size: int) -> NDArray[np.uint8]:
    import cv2

    pixels = look.pixels
    side = min(pixels.shape[:2])
    top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
    part = np.ascontiguousarray(pixels[top : top + side, left : left + side])
    return np.asarray(cv2.resize(part, (size, size), interpolation=cv2.INTER_AREA), np.uint8)
