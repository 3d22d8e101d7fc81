"""What the threshold for grouping is derived from: how similar a library's faces of different people are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Apart, Clusters

Floats = NDArray[np.float32]

# Without a metric, SFace's impostors have a mean of 0.10 and a spread of 0.09 at a match threshold of 0.40. A
# library of a few people says little about all others: these shares of the threshold speak for them. With the metric,
# 0 and 0.09 at 0.32 are less in the mean and as much four spreads above it, which is where groups are told apart.
_MEAN, _SPREAD = 0.25, 0.225
_PRIOR_PEOPLE = 25  # as many groups as the prior counts for
_WIDEST = 1.25  # times the expected spread, for a first estimate
_PAIRS = 200_000
_PRIOR_PAIRS = 200  # as many pairs of faces in one photo as the prior counts for


@dataclass(frozen=True, slots=True)
class Impostors:
    """How similar faces of two different people are, and how many faces have others of their own person.

    Attributes
    ----------
    mean, spread
        Mean and standard deviation of the similarity of faces of two different people.
    company
        The share of faces that are not the only one of their person, as far as it is known.
    """

    mean: float
    spread: float
    company: float = 0.0

    @classmethod
    def expected(cls, threshold: float) -> Impostors:
        """Return what a descriptor with this match threshold leads one to expect.

        >>> Impostors.expected(0.4)
        Impostors(mean=0.1, spread=0.09, company=0.0)
        """
        return cls(round(_MEAN * threshold, 6), round(_SPREAD * threshold, 6))

    def seen_together(self, vectors: Floats, apart: Apart, mistakes: float) -> Impostors:
        """Return what to expect after a look at faces that share a photo, which are of two people.

        People of one library may look alike, as families do. As many pairs as there are ``mistakes`` among so
        many faces, such as mirrors, prove nothing.
        """
        pairs = np.flatnonzero(np.isfinite(apart.weight))
        proof = len(pairs) - mistakes * len(vectors)
        if proof <= 0:
            return self
        some = np.random.default_rng(0).permutation(pairs)[:_PAIRS]
        found = _robust(_similarities(vectors, apart.one[some], apart.other[some]), self)
        return found.shrunk(self, proof, _PRIOR_PAIRS)

    @classmethod
    def of_faces(cls, vectors: Floats, prior: Impostors) -> Impostors:
        """Return a first estimate from faces of unknown people.

        Most pairs of faces are of two people. Pairs of one person are at the upper end: the median, and the
        distance of the lower sixth from it, hardly notice them, unless most faces are of one person: then
        the median is that of no strangers, and what was expected is the better estimate.
        """
        n = len(vectors)
        if n < 2:
            return prior
        one, other = np.random.default_rng(0).integers(n, size=(2, _PAIRS))
        one, other = one[one != other], other[one != other]
        found = _robust(_similarities(vectors, one, other), prior)
        return prior if found.mean > prior.mean + prior.spread else found.shrunk(prior, n)

    @classmethod
    def between(cls, vectors: Floats, groups: NDArray[np.int64], prior: Impostors) -> Impostors:
        """Return the estimate from faces in groups: pairs of faces of two groups, each group alike.

        Computed from sums alone. With m the mean of a group's faces x, and T that of their products x x', the
        similarities of two groups' faces have the mean m . m and the mean square <T, T>.
        """
        count = int(groups.max()) + 1 if len(groups) else 0
        if count < 2:
            return prior
        each = Clusters.of(vectors).merged(groups, count)
        means, sizes = each.means, each.sizes
        products = vectors.T @ (vectors / sizes[groups, None].astype(np.float32))
        within = np.einsum("gd,gd->g", means, means).astype(np.float64)  # of a face with itself too
        pairs = count * (count - 1)
        mean = (float((means.sum(axis=0, dtype=np.float64) ** 2).sum()) - within.sum()) / pairs
        # <T, T> of one group is the mean square of the similarities inside it
        inside = np.where(sizes > 1, (within - 1 / sizes) / np.maximum(1 - 1 / sizes, 0.5), 0.0)
        squares = 1 / sizes + (1 - 1 / sizes) * inside**2
        square = (float((products.astype(np.float64) ** 2).sum()) - squares.sum()) / pairs
        company = float((sizes[groups] > 1).mean())
        found = cls(mean, float(np.sqrt(max(square - mean**2, 1e-8))), company)
        return found.shrunk(prior, count)

    def shrunk(self, prior: Impostors, count: float, prior_count: int = _PRIOR_PEOPLE) -> Impostors:
        """Return a mixture of this estimate from ``count`` people, or pairs, and of what was expected."""
        share = count / (count + prior_count)
        mean = float(share * self.mean + (1 - share) * prior.mean)
        variance = share * self.spread**2 + (1 - share) * prior.spread**2
        company = share * self.company + (1 - share) * prior.company
        return Impostors(mean, float(np.sqrt(variance)), company)


def _similarities(vectors: Floats, one: NDArray[np.int64], other: NDArray[np.int64]) -> Floats:
    parts = [slice(at, at + 8192) for at in range(0, len(one), 8192)]
    return np.concatenate([np.einsum("ij,ij->i", vectors[one[p]], vectors[other[p]]) for p in parts])


def _robust(similarity: Floats, prior: Impostors) -> Impostors:
    """Return mean and spread of strangers' similarities among which a few of one person are."""
    low, middle = np.quantile(similarity, [0.1587, 0.5])
    return Impostors(float(middle), min(float(middle - low), _WIDEST * prior.spread))
