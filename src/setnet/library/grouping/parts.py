"""Merge what is most alike among many faces, in parts, before all are compared with all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Apart, cells_of
from setnet.library.grouping.clustering import Clustering
from setnet.library.grouping.impostors import Impostors
from setnet.library.grouping.progress import OnProgress
from setnet.library.grouping.rule import bars, rule_for

PART = 4000  # faces that are compared with each other, on average; at most twice as many


def merged_in_parts(whole: Clustering, impostors: Impostors, say: OnProgress) -> Clustering:
    """Return a clustering in which faces that are near each other and very much alike have merged.

    The bar is the one for as many clusters as there are: it is so high that these pairs would merge anyway.
    The many faces of one person become few clusters, which takes most of the work from what follows.
    """
    n = len(whole)
    bar = bars(n)[n]
    to, count, done = np.empty(n, np.int64), 0, 0
    parts = _parts(whole)
    for part, apart in zip(parts, _apart_in(parts, whole.apart, n), strict=True):
        some = replace(whole, apart=apart).take(part)
        rule = replace(rule_for(impostors, 0), bars=np.full(len(part) + 1, bar))
        found = some.linked(some.neighbours(rule, _quiet), rule, _quiet)
        to[part] = count + found.of_face
        count, done = count + len(found), done + len(part)
        say("grouping similar faces", done, n)
    return whole.merged(to)


def _parts(whole: Clustering) -> list[NDArray[np.int64]]:
    """Return the rows of each part: a cell, or a piece of one with thousands of faces of one person."""
    cells = cells_of(whole.clusters.means, -(-len(whole) // PART))[0]
    return [part for cell in cells if len(cell) for part in np.array_split(cell, -(-len(cell) // (2 * PART)))]


def _apart_in(parts: list[NDArray[np.int64]], apart: Apart, n: int) -> Iterator[Apart]:
    """Yield the pairs apart of which both are in a part, for each part."""
    part_of = np.empty(n, np.int64)
    for number, rows in enumerate(parts):
        part_of[rows] = number
    one = part_of[apart.one]
    inside = np.flatnonzero(one == part_of[apart.other])
    inside = inside[np.argsort(one[inside], kind="stable")]
    ends = np.searchsorted(one[inside], np.arange(len(parts) + 1))
    for first, end in pairwise(ends.tolist()):
        rows = inside[first:end]
        yield Apart(apart.one[rows], apart.other[rows], apart.weight[rows])


def _quiet(stage: str, done: int, total: int) -> None:
    """Say nothing of the progress of a part."""
