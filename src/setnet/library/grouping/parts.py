"""Merge what is most alike among many faces, in parts, before all are compared with all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setnet.index import cells_of
from setnet.library.grouping.clustering import Clustering
from setnet.library.grouping.impostors import Impostors
from setnet.library.grouping.progress import OnProgress
from setnet.library.grouping.rule import bars, rule_for

PART = 4000  # faces that are compared with each other, on average


def merged_in_parts(whole: Clustering, impostors: Impostors, say: OnProgress) -> Clustering:
    """Return a clustering in which faces that are near each other and very much alike have merged.

    The bar is the one for as many clusters as there are: it is so high that these pairs would merge anyway.
    The many faces of one person become few clusters, which takes most of the work from what follows.
    """
    n = len(whole)
    bar = bars(n)[n]
    to, count, done = np.empty(n, np.int64), 0, 0
    for part in cells_of(whole.clusters.means, -(-n // PART))[0]:
        if not len(part):
            continue
        some = whole.take(part)
        rule = replace(rule_for(impostors, 0), bars=np.full(len(part) + 1, bar))
        found = some.linked(some.neighbours(rule, _quiet), rule, _quiet)
        to[part] = count + found.of_face
        count, done = count + len(found), done + len(part)
        say("grouping similar faces", done, n)
    return whole.merged(to)


def _quiet(stage: str, done: int, total: int) -> None:
    """Say nothing of the progress of a part."""
