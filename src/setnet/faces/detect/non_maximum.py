"""Non-maximum suppression: of boxes that overlap, the best one stays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def non_maximum(
    boxes: npt.NDArray[np.float32], overlap: float, of_smaller: bool = False
) -> npt.NDArray[np.intp]:
    """Return which rows (x0, y0, x1, y1, score) to keep, best first.

    A box goes when it shares more than `overlap` of the union (or, `of_smaller`, of the smaller
    box) with a better one.

    >>> non_maximum(np.array([[0, 0, 4, 4, 0.6], [0, 0, 4, 5, 0.9], [9, 9, 12, 12, 0.7]]), 0.5)
    array([1, 2])
    """
    x0, y0, x1, y1 = boxes[:, :4].T
    areas = np.maximum(x1 - x0, 0) * np.maximum(y1 - y0, 0)
    left = np.argsort(-boxes[:, 4], kind="stable")
    keep: list[int] = []
    while left.size:
        best, left = left[0], left[1:]
        keep.append(int(best))
        width = np.minimum(x1[best], x1[left]) - np.maximum(x0[best], x0[left])
        height = np.minimum(y1[best], y1[left]) - np.maximum(y0[best], y0[left])
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        union = areas[best] + areas[left] - shared
        left = left[shared <= overlap * (np.minimum(areas[best], areas[left]) if of_smaller else union)]
    return np.array(keep, np.intp)
