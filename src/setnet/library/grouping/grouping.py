"""Group faces by person: average linkage over the graph of their neighbours, with the rule of this library.

The result depends on the faces and not on their order, but for rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.heads import ELEMENT_LOGISTIC
from setnet.library.grouping.clustering import Clustering
from setnet.library.grouping.faces_to_group import FacesToGroup
from setnet.library.grouping.impostors import Impostors
from setnet.library.grouping.parts import merged_in_parts
from setnet.library.grouping.progress import OnProgress
from setnet.library.grouping.rule import APART_RATE, rule_for

WHOLE = 50_000  # faces up to which all are compared at once; more are merged in parts before
MOST_ROUNDS = 6
FEW = 0.25  # of the clusters: if fewer have merged, only these are compared with all others

Floats = NDArray[np.float32]


def group_faces(
    faces: FacesToGroup, expected: Impostors, progress: OnProgress | None = None
) -> tuple[NDArray[np.int64], Impostors]:
    """Return the group of each face, numbered from 0 on, and the impostors that the rule was made from.

    ``expected`` are impostors as the descriptor usually has them: in a small library they count.
    """
    say = progress or (lambda stage, done, total: None)
    if not len(faces):
        return np.empty(0, np.int64), expected
    expected = expected.seen_together(faces.vectors, faces.apart, APART_RATE)
    begun = Clustering.of(faces)
    impostors = Impostors.of_faces(faces.vectors, expected)
    if len(begun) > WHOLE:
        begun = merged_in_parts(begun, impostors, say)
    rule = rule_for(impostors, len(begun))
    near = begun.neighbours(rule, say)
    draft = begun.linked(near, rule, say)
    impostors = Impostors.between(faces.vectors, draft.of_face, expected)
    rule = rule_for(impostors, len(begun))
    before, found = begun, begun.linked(near, rule, say)
    for _ in range(MOST_ROUNDS):  # clusters have other neighbours than their faces had
        if len(found) == len(before):
            break
        new = found.merged_since(before)
        near = found.neighbours(rule, say, new if len(new) < FEW * len(found) else None)
        before, found = found, found.linked(near, rule_for(impostors, len(found)), say)
    return found.of_face, impostors


def group_descriptors(
    descriptors: Floats,
    match_threshold: float = ELEMENT_LOGISTIC.threshold,
    photos: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the group of each descriptor at unit length, with nothing known but the photo each is in."""
    return group_faces(FacesToGroup.unknown(descriptors, photos), Impostors.expected(match_threshold))[0]
