"""From clusters to groups that last: which number each cluster has, and whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.library.grouping.identities import Identities

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Homes:
    """The group of each face from now on.

    Attributes
    ----------
    group
        The group's number; -1, -2 and so on for new ones.
    person
        Whose a group without a name is from now on, and whose a new one is, by number.
    """

    group: Ints
    person: dict[int, int]


def homes_of(clusters: Ints, claims: Mapping[int, int], known: Identities) -> Homes:
    """Return the groups that clusters become; what users said comes first.

    `clusters` has the cluster of each face, `claims` the person whose portraits are in a cluster. Faces of
    named and hidden groups stay where they are, and the others of their cluster come to them. Other clusters
    take over the group that has most of its faces in them, or get a new one. A face that was refused goes by
    itself rather than to the group of a person that it is not.
    """
    return _Homes(clusters, claims, known).found()


class _Homes:
    def __init__(self, clusters: Ints, claims: Mapping[int, int], known: Identities) -> None:
        self._cluster, self._claims, self._known = clusters, claims, known
        self._fixed = known.fixed
        self._group = self._fixed.copy()
        self._person: dict[int, int] = {}
        self._new = 0
        named = np.flatnonzero(known.person)
        self._owner = dict(zip(known.group[named].tolist(), known.person[named].tolist(), strict=True))

    def found(self) -> Homes:
        free = np.flatnonzero(self._fixed == 0)
        home = self._homes_of_clusters(free)
        self._group[free] = [home[cluster] for cluster in self._cluster[free].tolist()]
        self._take_labelled_home()
        self._send_refused_away()
        return Homes(self._group, self._person)

    def _homes_of_clusters(self, free: Ints) -> dict[int, int]:
        """Return the group of each cluster that has free faces; the largest ones get the first numbers."""
        home = self._anchors()
        clusters, first, sizes = np.unique(self._cluster[free], return_index=True, return_counts=True)
        inherited = self._inherited(free)
        labels = self._labels(free)
        for at in np.lexsort((first, -sizes)).tolist():
            cluster = int(clusters[at])
            if cluster not in home:
                home[cluster] = inherited.get(cluster) or self._next()
                person = self._claims.get(cluster) or labels.get(cluster)
                if person:
                    self._person[home[cluster]] = person
        return home

    def _anchors(self) -> dict[int, int]:
        """Return the named or hidden group of which a cluster has most faces; a named one comes first."""
        rows = np.flatnonzero(self._fixed)
        best: dict[int, tuple[bool, int, int]] = {}
        for cluster, group, count in _counted(self._cluster[rows], self._fixed[rows]):
            rank = group in self._owner, count, -group
            best[cluster] = max(best.get(cluster, rank), rank)
        return {cluster: -rank[2] for cluster, rank in best.items()}

    def _inherited(self, free: Ints) -> dict[int, int]:
        """Return which group without a name each cluster takes over.

        A group goes to the cluster with most of its faces; of several, a cluster takes the one that most come
        from.
        """
        known = self._known
        rows = free[(known.group[free] > 0) & (known.person[free] == 0) & ~known.hidden[free]]
        taken: dict[int, int] = {}
        placed: set[int] = set()
        for group, cluster, _ in _counted(known.group[rows], self._cluster[rows]):
            if group not in placed:
                placed.add(group)
                taken.setdefault(cluster, group)
        return taken

    def _labels(self, free: Ints) -> dict[int, int]:
        """Return whose face a cluster has, by what users said."""
        rows = free[self._known.label[free] > 0]
        return dict(zip(self._cluster[rows].tolist(), self._known.label[rows].tolist(), strict=True))

    def _take_labelled_home(self) -> None:
        """Put confirmed faces that are elsewhere into a group of their person."""
        label = self._known.label
        for row in np.flatnonzero((self._fixed == 0) & (label > 0)).tolist():
            person = int(label[row])
            if self._person_of(int(self._group[row])) != person:
                theirs = [g for g, who in (self._owner | self._person).items() if who == person]
                home = min(theirs, key=lambda group: (group < 0, abs(group)), default=0) or self._next()
                self._person.setdefault(home, person)
                self._group[row] = home

    def _send_refused_away(self) -> None:
        known = self._known
        for row, person in zip(known.refused_face.tolist(), known.refused_person.tolist(), strict=True):
            if self._person_of(int(self._group[row])) == person and known.label[row] != person:
                self._group[row] = self._next()

    def _person_of(self, group: int) -> int:
        return self._person.get(group) or self._owner.get(group, 0)

    def _next(self) -> int:
        self._new -= 1
        return self._new


def _counted(one: Ints, other: Ints) -> list[tuple[int, int, int]]:
    """Return the different pairs of two arrays and how often each comes, the most frequent first.

    >>> _counted(np.array([4, 5, 5]), np.array([1, 7, 7]))
    [(5, 7, 2), (4, 1, 1)]
    """
    scale = int(other.max(initial=0)) + 1
    key, first, count = np.unique(one * scale + other, return_index=True, return_counts=True)
    order = np.lexsort((first, -count))
    pairs = np.divmod(key[order], scale)
    return list(zip(pairs[0].tolist(), pairs[1].tolist(), count[order].tolist(), strict=True))
