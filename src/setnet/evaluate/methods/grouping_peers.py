"""Other ways to group faces, each in its simplest form, to compare ours with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Groups = NDArray[np.int64]
Peer = Callable[[Floats, float], Groups]  # of descriptors and a threshold

_WHISPERS = 20  # rounds


def connected_components(faces: Floats, threshold: float) -> Groups:
    """Return groups of faces that are linked by a chain of similarities at or above the threshold."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components as components

    return np.asarray(components(csr_array(_table(faces) >= threshold), directed=False)[1], np.int64)


def average_linkage(faces: Floats, threshold: float) -> Groups:
    """Return the clusters whose mean similarity reaches the threshold; all pairs are compared."""
    from scipy.cluster.hierarchy import fcluster

    return np.asarray(fcluster(_tree(faces), 1 - threshold, "distance"), np.int64)


def chinese_whispers(faces: Floats, threshold: float) -> Groups:
    """Return the groups that faces settle in when each joins the one it is most similar to (Biemann 2006)."""
    table = _table(faces)
    near = [np.flatnonzero((row >= threshold) & (np.arange(len(row)) != i)) for i, row in enumerate(table)]
    groups = np.arange(len(faces))
    rng = np.random.default_rng(0)
    for _ in range(_WHISPERS):
        for face in rng.permutation(len(faces)).tolist():
            if len(near[face]):
                names, place = np.unique(groups[near[face]], return_inverse=True)
                groups[face] = names[np.bincount(place, table[face, near[face]]).argmax()]
    return groups


def hdbscan(faces: Floats, threshold: float) -> Groups:
    """Return the clusters of scikit-learn's HDBSCAN of two faces or more; noise is alone. No threshold."""
    from sklearn.cluster import HDBSCAN

    found = HDBSCAN(min_cluster_size=2, min_samples=1, copy=True).fit_predict(faces.astype(np.float64))
    alone = found < 0
    found[alone] = found.max(initial=-1) + 1 + np.arange(alone.sum())
    return np.asarray(found, np.int64)


def _table(faces: Floats) -> Floats:
    return np.asarray(faces @ faces.T)


_trees: dict[int, NDArray[np.float64]] = {}


def _tree(faces: Floats) -> NDArray[np.float64]:
    """Return the tree of all merges; that of the latest faces is kept, as several thresholds cut it."""
    from scipy.cluster.hierarchy import linkage

    if id(faces) not in _trees:
        _trees.clear()
        apart = 1 - _table(faces)[np.triu_indices(len(faces), 1)]
        _trees[id(faces)] = linkage(np.maximum(apart, 0).astype(np.float64), "average")
    return _trees[id(faces)]


PEERS: dict[str, Peer] = {
    "connected components": connected_components,
    "Chinese whispers": chinese_whispers,
    "average linkage, one threshold": average_linkage,
}
