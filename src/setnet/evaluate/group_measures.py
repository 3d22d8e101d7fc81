"""How good groups of faces are: BCubed precision and recall, and how many people were found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class GroupQuality:
    """Measures of groups against the ground truth.

    Attributes
    ----------
    precision, recall
        BCubed (Bagga and Baldwin 1998): of the faces in a face's group, the share that are of its person; of
        its person's faces, the share that are in its group; the mean over all faces.
    found
        The share of people with two faces or more of whom half the faces or more are in one group, which is
        of nobody else to a tenth or more.
    """

    precision: float
    recall: float
    found: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def group_quality(groups: ArrayLike, people: ArrayLike) -> GroupQuality:
    """Compare the group of each face with whose face it is.

    >>> group_quality([0, 0, 0, 1], ["ann", "ann", "ben", "ben"])
    GroupQuality(precision=0.6666666666666666, recall=0.75, found=0.5)
    """
    group, group_size = _numbered(groups)
    person, person_size = _numbered(people)
    pair, place, shared = np.unique(
        group * len(person_size) + person, return_inverse=True, return_counts=True
    )
    pure = shared / group_size[pair // len(person_size)]
    owner = pair % len(person_size)
    whole = shared / person_size[owner]
    several = person_size > 1
    seen = np.zeros(len(person_size), bool)
    seen[owner[(pure > 0.9) & (whole >= 0.5)]] = True
    found = float(seen[several].mean()) if several.any() else 1.0
    return GroupQuality(float(pure[place].mean()), float(whole[place].mean()), found)


def pairwise_agreement(one: ArrayLike, other: ArrayLike) -> float:
    """Return the share of pairs together in either of two groupings that are together in both (Jaccard).

    >>> pairwise_agreement([0, 0, 0, 1], [5, 5, 7, 7])
    0.25
    """
    first, first_size = _numbered(one)
    second, second_size = _numbered(other)
    both = np.unique(first * len(second_size) + second, return_counts=True)[1]
    pairs = [float((sizes * (sizes - 1)).sum()) for sizes in (both, first_size, second_size)]
    either = pairs[1] + pairs[2] - pairs[0]
    return pairs[0] / either if either else 1.0


def _numbered(values: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    _, numbers, sizes = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return numbers.astype(np.int64), sizes.astype(np.int64)
