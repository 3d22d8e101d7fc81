"""Which faces of a group stand for the person: good ones, spread over the group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST = 12
_WORST = 0.5  # of the best face's quality: worse ones are no examples where there are others
_FAR = 0.2  # the share of faces least like the group, which may be somebody else's: no examples of many


def example_faces(vectors: NDArray[np.float32], quality: NDArray[np.float64], most: int = MOST) -> list[int]:
    """Return the rows of faces to keep as examples, the most typical one first.

    The next one is always that which is least like those chosen, among good faces that are like the group:
    views and ages that the others do not show.

    >>> views = np.array([[1, 0], [0.9, 0.436], [0.8, 0.6], [0.99, 0.141]], np.float32)
    >>> example_faces(views, np.array([1.0, 1.0, 1.0, 0.3]), most=3)
    [1, 0, 2]
    """
    mean = quality @ vectors
    central = vectors @ (mean / max(float(np.linalg.norm(mean)), 1e-12))
    usable = quality >= _WORST * quality.max(initial=0.0)
    if usable.sum() > most:
        usable &= central >= np.quantile(central[usable], _FAR)
    rows = np.flatnonzero(usable)
    chosen = [int(rows[np.argmax((central * quality)[rows])])]
    nearest = vectors[rows] @ vectors[chosen[0]]
    while len(chosen) < min(most, len(rows)):
        gain = (1.0 - nearest) * quality[rows]
        gain[np.isin(rows, chosen)] = -1.0
        chosen.append(int(rows[np.argmax(gain)]))
        nearest = np.maximum(nearest, vectors[rows] @ vectors[chosen[-1]])
    return chosen
