"""Let new faces join groups, or form new ones, without comparing all faces again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.library.grouping.clustering import Clustering
from setnet.library.grouping.faces_to_group import FacesToGroup
from setnet.library.grouping.grouping import MOST_ROUNDS
from setnet.library.grouping.impostors import Impostors
from setnet.library.grouping.progress import OnProgress
from setnet.library.grouping.rule import APART_RATE, rule_for


def join_faces(
    faces: FacesToGroup,
    is_new: NDArray[np.bool_],
    expected: Impostors,
    progress: OnProgress | None = None,
) -> NDArray[np.int64]:
    """Return the group of each face, numbered from 0 on; faces of one unit stay together.

    Only the clusters of faces that are new, and what these merged with, are compared with all others: groups
    that were told apart before stay so, unless a new face is like both.
    """
    say = progress or (lambda stage, done, total: None)
    if not len(faces):
        return np.empty(0, np.int64)
    found = Clustering.of(faces)
    if not is_new.any():
        return found.of_face
    expected = expected.seen_together(faces.vectors, faces.apart, APART_RATE)
    known = ~is_new
    groups = np.unique(found.of_face[known], return_inverse=True)[1].astype(np.int64)
    impostors = Impostors.between(faces.vectors[known], groups, expected)
    moving = np.unique(found.of_face[is_new])
    for _ in range(MOST_ROUNDS):
        rule = rule_for(impostors, len(found))
        more = found.linked(found.neighbours(rule, say, moving), rule, say)
        if len(more) == len(found):
            break
        to = np.empty(len(found), np.int64)
        to[found.of_face] = more.of_face
        moving, found = np.flatnonzero(np.bincount(to) > 1), more
    return found.of_face
