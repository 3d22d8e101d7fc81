"""When two groups of faces are taken for one person.

The rule was chosen on the training half of LFW and degraded copies of it; `setnet evaluate grouping` measures
it on the other half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.engine import LinkageRule
from setnet.library.grouping.impostors import Impostors

# Of all groups, the share that may be most similar to a stranger's by chance: the threshold rises with the
# number of groups, as more strangers are compared. Where every face is alone every merge is false; where all
# have company more false ones are worth the true ones that come with them, and groups of many faces, whose
# means hold less chance than `REST` says, make fewer of them.
FALSE_MERGES_ALONE, FALSE_MERGES_IN_COMPANY = 0.02, 0.05
# What is left of the spread of impostors' similarities between the means of many faces each. By the
# descriptors' statistics it is the mean similarity of one person's faces, 0.6 to 0.7; look-alikes are more
# frequent than these say.
REST = 0.8
# Two faces of one photo are two people, unless in mirrors, collages and pictures in pictures, which this
# share of a person's faces may be in. One photo is weak evidence, and ten are strong: the penalty, in
# standard deviations for a pair of single faces, grows with how unlikely that many are at this rate.
APART_PENALTY, APART_RATE = 1.0, 0.03


def bars(most: int, company: float = 0.0) -> NDArray[np.float64]:
    """Return the least score of two groups that merge, by the number of groups, from 0 to ``most``.

    Strangers' scores are about normal: that of the most similar of n strangers passes the bar with a
    probability that depends on how many faces have ``company``.
    """
    from scipy.special import ndtri

    share = FALSE_MERGES_ALONE + (FALSE_MERGES_IN_COMPANY - FALSE_MERGES_ALONE) * company
    chance = np.minimum(share / np.maximum(np.arange(most + 1), 2), 0.5)
    return np.asarray(-ndtri(chance), np.float64)


def rule_for(impostors: Impostors, groups: int) -> LinkageRule:
    """Return the rule for a library with impostors like these and at most so many groups."""
    return LinkageRule(
        impostors.mean, impostors.spread, REST, APART_PENALTY, APART_RATE, bars(groups, impostors.company)
    )
