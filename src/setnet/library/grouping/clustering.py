"""A clustering of faces under way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Apart, Clusters, LinkageRule, Neighbours, link, nearest_neighbours
from setnet.library.grouping.faces_to_group import FacesToGroup
from setnet.library.grouping.progress import OnProgress

NEIGHBOURS = 32  # of each cluster; what these leave out is found when the next ones are compared
EXACT = 150_000  # clusters up to which all are compared with all

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """Clusters under way, the pairs of them that are apart, and the cluster of each face."""

    clusters: Clusters
    apart: Apart
    of_face: NDArray[np.int64]

    @classmethod
    def of(cls, faces: FacesToGroup) -> Clustering:
        """Return one cluster for each face, or unit of faces."""
        alone = cls(Clusters.of(faces.vectors, faces.weights), faces.apart, np.arange(len(faces)))
        if not len(faces.names):
            return alone
        of_one = faces.units >= 0
        key = np.where(of_one, faces.units, len(faces.names) + np.arange(len(faces)))
        known, to = np.unique(key, return_inverse=True)
        started = alone.merged(to.astype(np.int64))
        units = known < len(faces.names)
        started.clusters.names[units] = faces.names[known[units]]
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
            self._scaled(rule), NEIGHBOURS, self._floor(rule), rows=some, exact=EXACT, progress=tell
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

    def _scaled(self, rule: LinkageRule) -> Floats:
        """Return vectors whose products are mean similarities over the spread that is left in them."""
        weights = self.clusters.weights
        scale = (weights * rule.factor(weights)).astype(np.float32)
        return np.asarray(self.clusters.sums / scale[:, None])

    def _floor(self, rule: LinkageRule) -> float:
        """Return a product of scaled vectors that no pair which reaches the bar falls below."""
        fewest = min(max(2, len(self) // 50), len(self))  # clusters that may be left in the end
        return rule.mean + 0.8 * rule.spread * float(rule.bars[fewest])
