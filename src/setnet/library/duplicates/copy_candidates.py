"""Pairs of photos that may be copies: near neighbours among VLADs, without comparing all with all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setnet.engine import nearest_neighbours
from setnet.library.duplicates.dense_sift import Floats
from setnet.library.grouping.progress import OnProgress

FLOOR = 0.35  # similarity of VLADs: on LFW's training half no copy is below, and few other photos above
_MOST = 16  # neighbours of a photo that are looked at
_EXACT = 20_000  # vectors up to which comparing all with all takes seconds
_PROBES = 96  # cells of a few hundred vectors that each cell is compared with


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """Two photos, by number, the second maybe mirrored; sorts by similarity, the most similar first."""

    distance: float
    one: int
    other: int
    mirrored: bool


def candidates(vlads: Floats, progress: OnProgress | None = None, floor: float = FLOOR) -> list[Candidate]:
    """Return the pairs of photos whose (n, 2, dim) VLADs are near each other, the most similar first."""
    count = len(vlads)
    both = np.ascontiguousarray(vlads.swapaxes(0, 1).reshape(2 * count, -1))  # photos, then mirrored ones

    def told(done: int, total: int) -> None:
        if progress is not None:
            progress("comparing", done, total)

    near = nearest_neighbours(both, _MOST, floor, exact=_EXACT, probes=_PROBES, progress=told)
    found: dict[tuple[int, int, bool], float] = {}
    entries = zip(near.row.tolist(), near.other.tolist(), near.similarity.tolist(), strict=True)
    for row, other, similarity in entries:
        one, two = sorted((row % count, other % count))
        if one != two:  # a symmetrical photo is its own mirror image
            pair = one, two, (row < count) != (other < count)
            found[pair] = max(similarity, found.get(pair, floor))
    return sorted(Candidate(-similarity, *pair) for pair, similarity in found.items())
