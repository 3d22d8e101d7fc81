"""Faces as arrays: how they travel from the process that found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import WorkerError

if TYPE_CHECKING:
    from setnet.faces import Face
    from setnet.sandbox import Message

_LARGEST_NORM_ERROR = 1e-3


def faces_to_arrays(faces: Sequence[Face], dim: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a message that hold faces; quality is rounded to four digits."""
    quality = [[round(float(value), 4) for value in astuple(face.quality)] for face in faces]
    return {
        "boxes": np.array([face.box for face in faces], np.float64).reshape(-1, 4),
        "landmarks": np.array([face.landmarks for face in faces], np.float32).reshape(-1, 5, 2),
        "scores": np.array([face.score for face in faces], np.float64),
        "quality": np.array(quality, np.float64).reshape(-1, 6),
        "descriptors": np.array([face.descriptor for face in faces], np.float32).reshape(-1, dim),
    }


def descriptors_from(reply: Message, faces: int, dim: int) -> NDArray[np.float32]:
    """Return the (faces, dim) descriptors in a message; what no descriptor can be is refused."""
    found: NDArray[np.float32] = reply.array("descriptors", np.float32, faces, dim)
    norms = np.linalg.norm(found.astype(np.float64), axis=1)
    if (abs(norms - 1.0) > _LARGEST_NORM_ERROR).any():
        raise WorkerError("its worker process gave an invalid reply (a descriptor is not of length 1)")
    return found


def faces_from(reply: Message, dim: int) -> list[Face]:
    """Return the faces in a message; what no face can be is refused with a `WorkerError`."""
    from setnet.faces import Box, Face, Quality

    boxes = reply.array("boxes", np.float64, None, 4)
    landmarks = reply.array("landmarks", np.float32, len(boxes), 5, 2)
    scores = reply.array("scores", np.float64, len(boxes))
    quality = reply.array("quality", np.float64, len(boxes), 6)
    descriptors = descriptors_from(reply, len(boxes), dim)
    return [
        Face(Box(*box), landmarks[i], score, Quality(*qualities), descriptors[i])
        for i, (box, score, qualities) in enumerate(
            zip(boxes.tolist(), scores.tolist(), quality.tolist(), strict=True)
        )
    ]
