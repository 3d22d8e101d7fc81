"""How similarities count when each query element has a threshold of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.sets import Logistic


@dataclass(frozen=True, slots=True)
class Scoring:
    """How the similarities of each query element count, in place of the index's one logistic.

    A similarity does not mean the same for all query elements: the mean of five examples is more similar to
    everything than one example. A pair of similarity s adds sigmoid(w (s - centre)) of its query element to
    the score, pairs are matched in falling order of s - centre, and one is a match from its query element's
    threshold on.

    Attributes
    ----------
    w
        Steepness of the score, above 0.
    centres, thresholds
        Of each query element: the similarity that adds one half to the score, and the least of a match.
    without
        Of each unwanted vector: the least similarity of a match.

    Examples
    --------
    >>> Scoring(w=60.0, centres=(0.5, 0.55), thresholds=(0.42, 0.45)).shift.round(2).tolist()
    [0.0, -0.05]
    """

    w: float
    centres: tuple[float, ...]
    thresholds: tuple[float, ...]
    without: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.w, *self.centres, *self.thresholds, *self.without)
        if not np.isfinite(numbers).all() or self.w <= 0 or not self.centres:
            raise InvalidInputError(
                f"{self}: finite numbers for one element or more, and w above 0, are expected"
            )

    def check(self, elements: int, without: int) -> None:
        """Raise unless there is a centre and a threshold for each query element and unwanted vector."""
        given = (len(self.centres), len(self.thresholds), len(self.without))
        if given != (elements, elements, without):
            raise InvalidInputError(
                f"scoring has {given[0]} centres, {given[1]} thresholds and {given[2]} of `without`: the "
                f"query has {elements} elements, and {without} vectors are unwanted"
            )

    @property
    def logistic(self) -> Logistic:
        """The logistic of the query element with the lowest centre, which no other exceeds."""
        return Logistic(self.w, -self.w * min(self.centres))

    @property
    def shift(self) -> NDArray[np.float64]:
        """What is added to the similarities of each query element for that logistic to score them."""
        return min(self.centres) - np.array(self.centres, np.float64)
