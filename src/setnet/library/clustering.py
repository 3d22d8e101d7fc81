"""Groups faces by person: average linkage over the graph of their neighbours, with the rule of this library.

The result depends on the faces and not on their order, but for rounding. When two groups are taken for one
person is a rule that was chosen on the training half of LFW and degraded copies of it; `python -m
studies.grouping` measures it on the other half. Its threshold is derived from how similar a library's faces
of different people are. Many faces are merged in parts first; new faces join groups without comparing all
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from setnet.heads import ELEMENT_LOGISTIC
from setnet.library.linkage import CannotLink, Clusters, LinkageRule, link
from setnet.library.neighbours import Neighbours, cells_of, nearest_neighbours

OnProgress = Callable[[str, int, int], None]  # what is being done, how much of it is, of how much


Floats = NDArray[np.float32]

# Without a metric, SFace's scores of non-matches have a mean of 0.10 and a spread of 0.09, at a threshold of
# 0.40. A library of a few people says little about all others: these shares of the threshold speak for them.
# With the metric, 0 and 0.09 at 0.32 are less in the mean and as much four spreads above it, which is where
# groups are told apart.
_MEAN, _SPREAD = 0.25, 0.225
_PRIOR_PEOPLE = 25  # as many groups as the prior counts for
_WIDEST = 1.25  # times the expected spread, for a first estimate
_PAIRS = 200_000
_PRIOR_PAIRS = 200  # as many pairs of faces in one photo as the prior counts for


@dataclass(frozen=True, slots=True)
class GroupingScores:
    """How similar faces of two different people are, and how many faces have others of their own person."""

    # mean and standard deviation of the similarity of faces of two different people
    mean: float
    spread: float
    # the share of faces that are not the only one of their person, as far as it is known
    company: float = 0.0

    @classmethod
    def expected(cls, threshold: float) -> GroupingScores:
        """Return what a descriptor with this match threshold leads one to expect.

        >>> GroupingScores.expected(0.4)
        GroupingScores(mean=0.1, spread=0.09, company=0.0)
        """
        return cls(round(_MEAN * threshold, 6), round(_SPREAD * threshold, 6))

    def seen_together(self, vectors: Floats, apart: CannotLink, mistakes: float) -> GroupingScores:
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
    def of_faces(cls, vectors: Floats, prior: GroupingScores) -> GroupingScores:
        """Return a first estimate from faces of unknown people.

        Most pairs of faces are of two people. Pairs of one person are at the upper end: the median, and the
        distance of the lower sixth from it, hardly notice them, unless most faces are of one person: then
        the median is that of no non-matches, and what was expected is the better estimate.
        """
        n = len(vectors)
        if n < 2:
            return prior
        one, other = np.random.default_rng(0).integers(n, size=(2, _PAIRS))
        one, other = one[one != other], other[one != other]
        found = _robust(_similarities(vectors, one, other), prior)
        return prior if found.mean > prior.mean + prior.spread else found.shrunk(prior, n)

    @classmethod
    def between(cls, vectors: Floats, groups: NDArray[np.int64], prior: GroupingScores) -> GroupingScores:
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

    def shrunk(self, prior: GroupingScores, count: float, prior_count: int = _PRIOR_PEOPLE) -> GroupingScores:
        """Return a mixture of this estimate from ``count`` people, or pairs, and of what was expected."""
        share = count / (count + prior_count)
        mean = float(share * self.mean + (1 - share) * prior.mean)
        variance = share * self.spread**2 + (1 - share) * prior.spread**2
        company = share * self.company + (1 - share) * prior.company
        return GroupingScores(mean, float(np.sqrt(variance)), company)


def _similarities(vectors: Floats, one: NDArray[np.int64], other: NDArray[np.int64]) -> Floats:
    parts = [slice(at, at + 8192) for at in range(0, len(one), 8192)]
    return np.concatenate([np.einsum("ij,ij->i", vectors[one[p]], vectors[other[p]]) for p in parts])


def _robust(similarity: Floats, prior: GroupingScores) -> GroupingScores:
    """Return mean and spread of non-matches' similarities among which a few of one person are."""
    low, middle = np.quantile(similarity, [0.1587, 0.5])
    return GroupingScores(float(middle), min(float(middle - low), _WIDEST * prior.spread))


# Of all groups, the share that may be most similar to a non-match's by chance: the threshold rises with the
# number of groups, as more non-matches are compared. Where each face is alone each merge is false; where all
# have company more false ones are worth the true ones that come with them, and groups of many faces, whose
# means hold less chance than `REST` says, make fewer of them.
FALSE_MERGES_ALONE, FALSE_MERGES_IN_COMPANY = 0.02, 0.05
# What is left of the spread of non-matches' similarities between the means of many faces each. By the
# descriptors' statistics it is the mean similarity of one person's faces, 0.6 to 0.7; look-alikes are more
# frequent than these say.
REST = 0.8
# Two faces of one photo are two people, unless in mirrors, collages and pictures in pictures, which this
# share of a person's faces may be in. One photo is weak evidence, and ten are strong: the penalty, in
# standard deviations for a pair of single faces, grows with how unlikely that many are at this rate.
APART_PENALTY, APART_RATE = 1.0, 0.03


def bars(max_groups: int, company: float = 0.0) -> NDArray[np.float64]:
    """Return the least score of two groups that merge, by the number of groups, from 0 to ``max_groups``.

    Non-matches' scores are about normal: that of the most similar of n non-matches passes the bar with a
    probability that depends on how many faces have ``company``.
    """
    share = FALSE_MERGES_ALONE + (FALSE_MERGES_IN_COMPANY - FALSE_MERGES_ALONE) * company
    chance = np.minimum(share / np.maximum(np.arange(max_groups + 1), 2), 0.5)
    normal = NormalDist()
    return -np.fromiter(map(normal.inv_cdf, chance.tolist()), np.float64, max_groups + 1)


def rule_for(scores: GroupingScores, groups: int) -> LinkageRule:
    """Return the rule for a library with scores of non-matches like these and at most so many groups."""
    return LinkageRule(
        scores.mean,
        scores.spread,
        REST,
        APART_PENALTY,
        APART_RATE,
        bars(groups, scores.company),
    )


@dataclass(frozen=True, slots=True, eq=False)
class FacesToLink:
    """Faces, and what is known about who is whom."""

    vectors: Floats  # (n, dim) descriptors at unit length
    weights: NDArray[np.float64]  # how much each face counts, from its quality: 1 for a good one
    # Faces of one number are of one person; -1 says nothing. The number is that of their label, if any.
    must_link: NDArray[np.int64]
    # whose faces linked under a number are: those of two labels are two people; -1 is nobody known
    known_labels: NDArray[np.int32]
    cannot_link: CannotLink  # pairs of faces that are of two people, probably or certainly

    @classmethod
    def unknown(cls, vectors: Floats, photos: NDArray[np.int64] | None = None) -> FacesToLink:
        """Return good faces of which nothing is known, but for the photo each is in."""
        n = len(vectors)
        apart = CannotLink.none() if photos is None else in_one_photo(photos)
        return cls(vectors, np.ones(n), np.full(n, -1), np.empty(0, np.int32), apart)

    def __len__(self) -> int:
        return len(self.vectors)


def in_one_photo(photos: NDArray[np.int64]) -> CannotLink:
    """Return the pairs of faces that are in one photo.

    >>> pairs = in_one_photo(np.array([7, 8, 7, 7]))
    >>> list(zip(pairs.one.tolist(), pairs.other.tolist()))
    [(0, 2), (0, 3), (2, 3)]
    """
    order = np.argsort(photos, kind="stable")
    ranked = photos[order]
    one, other = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    step = 1
    while len(same := np.flatnonzero(ranked[step:] == ranked[:-step])):
        one.append(order[same])
        other.append(order[same + step])
        step += 1
    first, second = np.concatenate(one), np.concatenate(other)
    by_face = np.lexsort((second, first))
    return CannotLink(first[by_face], second[by_face], np.ones(len(first), np.float32))


NEIGHBOURS = 32  # of each cluster; what these leave out is found when the next ones are compared
EXACT = 150_000  # clusters up to which all are compared with all


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """Clusters under way, the pairs of them that are apart, and the cluster of each face."""

    clusters: Clusters
    apart: CannotLink
    of_face: NDArray[np.int64]

    @classmethod
    def of(cls, faces: FacesToLink) -> Clustering:
        """Return one cluster for each face, or for faces that must be linked."""
        alone = cls(Clusters.of(faces.vectors, faces.weights), faces.cannot_link, np.arange(len(faces)))
        if not len(faces.known_labels):
            return alone
        of_one = faces.must_link >= 0
        key = np.where(of_one, faces.must_link, len(faces.known_labels) + np.arange(len(faces)))
        known, to = np.unique(key, return_inverse=True)
        started = alone.merged(to.astype(np.int64))
        units = known < len(faces.known_labels)
        started.clusters.names[units] = faces.known_labels[known[units]]
        return started

    def merged(self, to: NDArray[np.int64]) -> Clustering:
        """Return the work with clusters merged into those of these numbers."""
        clusters = self.clusters.merged(to, int(to.max()) + 1)
        return Clustering(clusters, self.apart.merged(to), to[self.of_face])

    def take(self, some: NDArray[np.int64]) -> Clustering:
        """Return some of the clusters by themselves."""
        place = np.full(len(self), -1)
        place[some] = np.arange(len(some))
        clusters = self.clusters
        return Clustering(
            Clusters(clusters.sums[some], clusters.weights[some], clusters.sizes[some], clusters.names[some]),
            self.apart.those(place),
            np.arange(len(some)),
        )

    def __len__(self) -> int:
        return len(self.clusters)

    def merged_since(self, before: Clustering) -> NDArray[np.int64]:
        """Return the clusters, in ascending order, that were several before."""
        to = np.empty(len(before), np.int64)
        to[before.of_face] = self.of_face
        return np.flatnonzero(np.bincount(to) > 1)

    def neighbours(
        self, rule: LinkageRule, say: OnProgress, some: NDArray[np.int64] | None = None
    ) -> Neighbours:
        """Return the clusters that each one, or each of some, may merge with."""

        def tell(done: int, total: int) -> None:
            say("comparing faces", done, total)

        near = nearest_neighbours(
            self._scale_vectors(rule), NEIGHBOURS, self._floor(rule), rows=some, exact=EXACT, progress=tell
        )
        if some is None:
            return near
        counts = np.zeros(len(self), np.int64)
        counts[some] = np.diff(near.start)
        return Neighbours(np.concatenate([[0], np.cumsum(counts)]), near.other, near.similarity)

    def linked(self, near: Neighbours, rule: LinkageRule, say: OnProgress) -> Clustering:
        """Return the clustering after all merges that the rule allows."""

        def tell(merges: int) -> None:
            say("grouping faces", merges, len(self))

        return self.merged(link(self.clusters, near, self.apart, rule, tell))

    def _scale_vectors(self, rule: LinkageRule) -> Floats:
        """Return vectors whose products are mean similarities over the spread that is left in them."""
        weights = self.clusters.weights
        scale = (weights * rule.factor(weights)).astype(np.float32)
        return np.asarray(self.clusters.sums / scale[:, None])

    def _floor(self, rule: LinkageRule) -> float:
        """Return a product of scaled vectors that no pair which reaches the bar falls below."""
        fewest = min(max(2, len(self) // 50), len(self))  # clusters that may be left in the end
        return rule.mean + 0.8 * rule.spread * float(rule.bars[fewest])


PART = 4000  # faces that are compared with each other, on average; at most twice as many


def merge_in_parts(whole: Clustering, scores: GroupingScores, say: OnProgress) -> Clustering:
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
        rule = replace(rule_for(scores, 0), bars=np.full(len(part) + 1, bar))
        found = some.linked(some.neighbours(rule, _quiet), rule, _quiet)
        to[part] = count + found.of_face
        count, done = count + len(found), done + len(part)
        say("grouping similar faces", done, n)
    return whole.merged(to)


def _parts(whole: Clustering) -> list[NDArray[np.int64]]:
    """Return the rows of each part: a cell, or a piece of one with thousands of faces of one person."""
    cells = cells_of(whole.clusters.means, -(-len(whole) // PART))[0]
    return [part for cell in cells if len(cell) for part in np.array_split(cell, -(-len(cell) // (2 * PART)))]


def _apart_in(parts: list[NDArray[np.int64]], apart: CannotLink, n: int) -> Iterator[CannotLink]:
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
        yield CannotLink(apart.one[rows], apart.other[rows], apart.weight[rows])


def _quiet(stage: str, done: int, total: int) -> None:
    """Say nothing of the progress of a part."""


WHOLE = 50_000  # faces up to which all are compared at once; more are merged in parts before
MAX_ROUNDS = 6
FEW = 0.25  # of the clusters: if fewer have merged, only these are compared with all others


def group_faces(
    faces: FacesToLink, expected: GroupingScores, progress: OnProgress | None = None
) -> tuple[NDArray[np.int64], GroupingScores]:
    """Return the group of each face, numbered from 0 on, and the scores that the rule was made from.

    ``expected`` are scores of non-matches as the descriptor usually has them: in a small library they count.
    """
    say = progress or (lambda stage, done, total: None)
    if not len(faces):
        return np.empty(0, np.int64), expected
    expected = expected.seen_together(faces.vectors, faces.cannot_link, APART_RATE)
    begun = Clustering.of(faces)
    scores = GroupingScores.of_faces(faces.vectors, expected)
    if len(begun) > WHOLE:
        begun = merge_in_parts(begun, scores, say)
    rule = rule_for(scores, len(begun))
    near = begun.neighbours(rule, say)
    draft = begun.linked(near, rule, say)
    scores = GroupingScores.between(faces.vectors, draft.of_face, expected)
    rule = rule_for(scores, len(begun))
    before, found = begun, begun.linked(near, rule, say)
    for _ in range(MAX_ROUNDS):  # clusters have other neighbours than their faces had
        if len(found) == len(before):
            break
        new = found.merged_since(before)
        near = found.neighbours(rule, say, new if len(new) < FEW * len(found) else None)
        before, found = found, found.linked(near, rule_for(scores, len(found)), say)
    return found.of_face, scores


def group_descriptors(
    descriptors: Floats,
    match_threshold: float = ELEMENT_LOGISTIC.threshold,
    photos: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the group of each descriptor at unit length, with nothing known but the photo each is in."""
    return group_faces(FacesToLink.unknown(descriptors, photos), GroupingScores.expected(match_threshold))[0]


def join_faces(
    faces: FacesToLink,
    is_new: NDArray[np.bool_],
    expected: GroupingScores,
    progress: OnProgress | None = None,
) -> NDArray[np.int64]:
    """Return the group of each face, numbered from 0 on; faces that must be linked stay together.

    Only the clusters of faces that are new, and what these merged with, are compared with all others: groups
    that were told apart before stay so, unless a new face is like both.
    """
    say = progress or (lambda stage, done, total: None)
    if not len(faces):
        return np.empty(0, np.int64)
    found = Clustering.of(faces)
    if not is_new.any():
        return found.of_face
    expected = expected.seen_together(faces.vectors, faces.cannot_link, APART_RATE)
    known = ~is_new
    groups = np.unique(found.of_face[known], return_inverse=True)[1].astype(np.int64)
    scores = GroupingScores.between(faces.vectors[known], groups, expected)
    moving = np.unique(found.of_face[is_new])
    for _ in range(MAX_ROUNDS):
        rule = rule_for(scores, len(found))
        more = found.linked(found.neighbours(rule, say, moving), rule, say)
        if len(more) == len(found):
            break
        to = np.empty(len(found), np.int64)
        to[found.of_face] = more.of_face
        moving, found = np.flatnonzero(np.bincount(to) > 1), more
    return found.of_face
