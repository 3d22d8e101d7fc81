"""When two groups of faces are taken for one person.

The rule was chosen on the training half of LFW and degraded copies of it; `setnet evaluate grouping` measures
it on the other half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.index import LinkageRule
from setnet.library.grouping.impostors import Impostors

# Of all groups, the share that may be most similar to a stranger's by chance: the threshold rises with the
# number of groups, as more strangers are compared.
FALSE_MERGES = 0.04
# What is left of the spread of impostors' similarities between the means of many faces each. By the
# descriptors' statistics it is the mean similarity of one person's faces, 0.6 to 0.7; look-alikes are more
# frequent than these say.
REST = 0.8
# Two faces of one photo are two people, unless in mirrors, collages and pictures in pictures: groups that
# always meet each other's faces need so many standard deviations more.
APART_PENALTY = 2.0


def bars(most: int) -> NDArray[np.float64]:
    """Return the least score of two groups that merge, by the number of groups, from 0 to ``most``.

    Strangers' scores are about normal: that of the most similar of n strangers passes the bar with the
    probability `FALSE_MERGES`.
    """
    from scipy.special import ndtri

    chance = np.minimum(FALSE_MERGES / np.maximum(np.arange(most + 1), 2), 0.5)
    return np.asarray(-ndtri(chance), np.float64)


def rule_for(impostors: Impostors, groups: int) -> LinkageRule:
    """Return the rule for a library with impostors like these and at most so many groups."""
    return LinkageRule(impostors.mean, impostors.spread, REST, APART_PENALTY, bars(groups))
