"""The tasks of a process that looks for near-duplicates: describe a photo, compare two photos."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from setnet.faces import open_photo
from setnet.library.duplicates.dense_sift import SIDE, small_grey
from setnet.library.duplicates.registration import Keypoints, agreement
from setnet.library.duplicates.vlad import photo_vlads
from setnet.library.indexing.photo_service import with_file
from setnet.sandbox import Message, Tasks

_ENOUGH = 4 * SIDE  # pixels on the longer side: also of a photo much longer than wide
_KEPT = 64  # photos whose keypoints are kept: pairs that follow each other share photos


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
