"""Initialisation (section 3.4): k-means for NetVLAD, PCA for the reduction, statistics for batch norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor, nn

from setnet.errors import TrainingError
from setnet.learn.models.aggregators.netvlad import NetVLAD, NetVLADAggregator


def kmeans(points: Tensor, clusters: int, seed: int, iterations: int = 50) -> Tensor:
    """Return `clusters` centres of `points` by Lloyd's iterations from k-means++ seeds."""
    if len(points) < clusters:
        raise TrainingError(
            f"k-means needs at least {clusters} descriptors, got {len(points)}: add training faces"
        )
    # Not scipy's kmeans2: as good on descriptors of LFW and slower (K = 8: 0.5 s for 0.35 s; K = 32: 1.4 for
    # 0.5), but its other centres would move every SetNet row of the published comparison.
    rng = np.random.default_rng(seed)
    chosen = [int(rng.integers(len(points)))]
    distance = ((points - points[chosen[0]]) ** 2).sum(1)
    for _ in range(clusters - 1):
        share = distance.double().numpy()
        total = share.sum()
        # Duplicated points leave no distance to draw by.
        pick = rng.choice(len(points), p=share / total) if total > 0 else rng.integers(len(points))
        chosen.append(int(pick))
        distance = torch.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(1))
    centres = points[chosen].clone()
    for _ in range(iterations):
        nearest = torch.cdist(points, centres).argmin(1)
        sizes = torch.bincount(nearest, minlength=clusters)
        sums = torch.zeros_like(centres).index_add(0, nearest, points)
        moved = torch.where(sizes[:, None] > 0, sums / sizes.clamp_min(1)[:, None], centres)
        if torch.equal(moved, centres):
            break
        centres = moved
    return centres


def initialise_netvlad(vlad: NetVLAD, elements: Tensor, seed: int = 0, alpha: float | None = None) -> float:
    """Set c_k to k-means centres, a_k = 2 alpha c_k and b_k = -alpha |c_k|^2, as NetVLAD does; return alpha.

    With these values the soft assignment is ``softmax(-alpha |x - c_k|^2)``. Without a given alpha it is
    chosen, as in the NetVLAD code, so that the nearest centre outweighs the second 100 to 1 on average.
    """
    elements = elements.detach().cpu()
    centres = kmeans(elements, vlad.clusters, seed)
    if alpha is None:
        if vlad.clusters == 1:
            alpha = 1.0
        else:
            nearest = (torch.cdist(elements, centres) ** 2).topk(2, dim=1, largest=False).values
            gap = float((nearest[:, 1] - nearest[:, 0]).mean())
            alpha = float(np.log(100.0)) / max(gap, 1e-6)
    with torch.no_grad():
        vlad.c.copy_(centres)
        vlad.a.copy_(2 * alpha * centres)
        vlad.b.copy_(-alpha * (centres**2).sum(1))
    return alpha


def initialise_reduction(fc: nn.Linear, norm: nn.BatchNorm1d, pooled: Tensor) -> None:
    """Put the principal components of NetVLAD's output into `fc`, their statistics into `norm`."""
    if len(pooled) <= fc.out_features:
        raise TrainingError(
            f"PCA to {fc.out_features} dimensions needs more than {fc.out_features} sets, got {len(pooled)}"
        )
    rows = pooled.detach().double()
    rows = rows - rows.mean(0)
    last = rows.shape[1] - 1
    # Not a full SVD: of 4,096 dimensions only the first are wanted, and this finds no others.
    first = max(0, last + 1 - fc.out_features)
    variance, axes = eigh((rows.T @ rows).numpy(), subset_by_index=[first, last])
    if len(variance) < fc.out_features or variance[0] < 1e-12 * variance[-1]:
        raise TrainingError(
            f"NetVLAD's output varies in fewer than {fc.out_features} directions: "
            "use fewer output dimensions or more training faces"
        )
    with torch.no_grad():
        fc.weight.copy_(torch.from_numpy(axes[:, ::-1].T.copy()))
        if fc.bias is not None:
            fc.bias.zero_()
        reduced = fc(pooled)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.copy_(reduced.mean(0))
        norm.running_var.copy_(reduced.var(0))
        norm.weight.fill_(1.0)
        norm.bias.zero_()


def random_sets(
    labels: np.ndarray, sizes: Sequence[int], number: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices, counts) of `number` random sets of different people, sizes drawn from `sizes`."""
    people = np.unique(labels)
    members = [np.flatnonzero(labels == person) for person in people]
    counts = rng.choice(np.asarray(sizes), size=number)
    if counts.max() > len(people):
        raise TrainingError(f"sets of {counts.max()} people need as many identities, got {len(people)}")
    indices = [
        rng.choice(members[person])
        for size in counts
        for person in rng.choice(len(people), size, replace=False)
    ]
    return np.array(indices, dtype=np.int64), counts.astype(np.int64)


def initialise_aggregator(
    aggregator: NetVLADAggregator,
    elements: Tensor,
    labels: np.ndarray,
    sizes: Sequence[int] = (1, 2, 3),
    number: int = 4000,
    seed: int = 0,
    alpha: float | None = None,
) -> float:
    """Initialise a SetNet aggregator from labelled training elements; return the alpha used."""
    used = initialise_netvlad(aggregator.vlad, elements, seed, alpha)
    indices, counts = random_sets(labels, sizes, number, np.random.default_rng(seed))
    with torch.no_grad():
        # Piece by piece: K x D_e times all elements at once would be gigabytes for large K.
        pieces, start = [], 0
        for piece in np.array_split(counts, max(1, number // 500)):
            stop = start + int(piece.sum())
            pieces.append(aggregator.vlad(elements[indices[start:stop]], torch.from_numpy(piece)))
            start = stop
    initialise_reduction(aggregator.fc, aggregator.norm, torch.cat(pieces))
    return used
