"""The logistic score of a similarity: sigmoid(w s + b), equation 2 of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Logistic:
    """A scaling w > 0 and a shift b that turn a similarity into the probability of a match.

    Examples
    --------
    >>> score = Logistic(w=20.0, b=-8.0)
    >>> score.threshold
    0.4
    >>> float(score.probability(0.4))
    0.5
    """

    w: float
    b: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.w) and math.isfinite(self.b) and self.w > 0):
            raise InvalidInputError(f"logistic (w={self.w}, b={self.b}): w must be positive, both finite")

    @property
    def threshold(self) -> float:
        """The similarity from which a pair counts as a match: probability one half."""
        return -self.b / self.w

    def probability(self, similarity: ArrayLike) -> NDArray[np.float64]:
        """Return sigmoid(w s + b) in float64, without overflow for any similarity."""
        z = self.w * np.asarray(similarity, dtype=np.float64) + self.b
        e = np.exp(-np.abs(z))
        return np.where(z >= 0, 1.0 / (1.0 + e), e / (1.0 + e))


# For unit-norm face descriptors of margin-trained networks: same person about 0.67, others about 0.1.
ELEMENT_LOGISTIC = Logistic(w=20.0, b=-8.0)
# A set vector of two or three elements keeps about 1/sqrt(F) of each element's similarity.
SET_LOGISTIC = Logistic(w=20.0, b=-7.0)
