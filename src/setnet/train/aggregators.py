"""Aggregators: the elements of each set become one vector (section 3.1); whitening before or after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor, nn

from setnet.errors import InvalidInputError, TrainingError
from setnet.heads.whitening import fit_whitening


def check_counts(elements: Tensor, counts: Tensor) -> None:
    """Raise unless `counts` cuts `elements` into sets of at least one."""
    if elements.ndim != 2:
        raise InvalidInputError(f"elements must be (n, dim), got shape {tuple(elements.shape)}")
    if counts.ndim != 1 or bool((counts < 1).any()):
        raise InvalidInputError("counts must be one positive number per set; drop empty sets first")
    if int(counts.sum()) != len(elements):
        raise InvalidInputError(
            f"counts add up to {int(counts.sum())} but there are {len(elements)} elements"
        )


def set_numbers(counts: Tensor) -> Tensor:
    """Return, for each element, the number of its set.

    >>> set_numbers(torch.tensor([2, 1])).tolist()
    [0, 0, 1]
    """
    return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)


def ragged_sum(values: Tensor, counts: Tensor) -> Tensor:
    """Return the sum of each set's rows, (N, ...)."""
    out = values.new_zeros((len(counts), *values.shape[1:]))
    return out.index_add(0, set_numbers(counts), values)


def ragged_mean(values: Tensor, counts: Tensor) -> Tensor:
    """Return the mean of each set's rows, (N, ...)."""
    return ragged_sum(values, counts) / counts.to(values.dtype)[:, None]


def unit(x: Tensor) -> Tensor:
    """Return the rows of `x` scaled to unit norm (a zero row stays zero)."""
    return torch.nn.functional.normalize(x, dim=-1, eps=1e-12)


class AggregatorModule(nn.Module):
    """Base of the set aggregators (section 3.1 of the paper, and its baselines).

    Attributes
    ----------
    element_dim, dim
        Width of an element and of a set vector.
    before_fc
        True when the elements are the features *before* the backbone's last layer.
    """

    before_fc = False

    def __init__(self, element_dim: int, dim: int) -> None:
        super().__init__()
        self.element_dim = element_dim
        self.dim = dim

    def forward(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return one unit vector per set, (N, dim); `counts` cuts the rows of `elements` into sets."""
        check_counts(elements, counts)
        return self.pool(elements, counts)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the vectors of sets whose counts were checked."""
        raise NotImplementedError

    def describe(self, elements: Tensor) -> Tensor:
        """Return the query vectors of single faces: sets of one element."""
        ones = torch.ones(len(elements), dtype=torch.long, device=elements.device)
        out: Tensor = self(elements, ones)
        return out


class Average(AggregatorModule):
    """Average pooling and L2: *Baseline*."""

    def __init__(self, element_dim: int) -> None:
        super().__init__(element_dim, element_dim)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit mean of each set."""
        return unit(ragged_mean(elements, counts))


class AverageBeforeFC(AggregatorModule):
    """Average of the L2-normalised features before the last layer, then that layer, then L2.

    The layer is the aggregator's own (started from the backbone's), so that training it moves one copy only.
    """

    before_fc = True

    def __init__(self, fc: nn.Linear) -> None:
        super().__init__(fc.in_features, fc.out_features)
        self.fc = nn.Linear(fc.in_features, fc.out_features, bias=fc.bias is not None)
        self.fc.load_state_dict(fc.state_dict())

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit image, under the last layer, of each set's mean feature."""
        return unit(self.fc(ragged_mean(unit(elements), counts)))


class GeneralisedMean(AggregatorModule):
    """``(mean |x|^p)^(1/p)`` and L2, with p learned: one for all dimensions or one per dimension.

    Signs are lost, so whitening can only follow the aggregation (section 5.2). The formula is made for
    descriptors without negative values; `signed` carries the signs of others through the powers.
    """

    def __init__(
        self, element_dim: int, per_dimension: bool = False, p: float = 3.0, signed: bool = False
    ) -> None:
        super().__init__(element_dim, element_dim)
        self.signed = signed
        self.p = nn.Parameter(torch.full((element_dim,) if per_dimension else (1,), p))

    @property
    def exponents(self) -> Tensor:
        """The exponents in use, from 1 to 6: below, 1 / p explodes; above, powers of small numbers are 0."""
        return self.p.clamp(1.0, 6.0)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit generalised mean of each set."""
        # Exponents are put back into their range: outside, a clamp would let no gradient through.
        self.p.data.copy_(self.exponents.detach())
        p = self.p
        # The floor keeps the logarithm in x^p's derivative finite at 0.
        powers = elements.abs().clamp_min(1e-6) ** p
        if not self.signed:
            return unit(ragged_mean(powers, counts) ** (1.0 / p))
        means = ragged_mean(torch.copysign(powers, elements), counts)
        return unit(torch.copysign(means.abs() ** (1.0 / p), means))


class MemoryVector(AggregatorModule):
    """The vector whose scalar product with every element of the set is one: the pseudo-inverse construction.

    ``m = X^T (X X^T + ridge I)^-1 1`` for the set's rows X, then L2; the ridge is for near-duplicates.
    """

    def __init__(self, element_dim: int, ridge: float = 0.01) -> None:
        super().__init__(element_dim, element_dim)
        self.ridge = ridge

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit memory vector of each set."""
        out = elements.new_zeros((len(counts), self.dim))
        numbers = set_numbers(counts)
        # Sets of one size are solved together: no padding, one batched solve per size.
        for size in torch.unique(counts).tolist():
            rows = torch.nonzero(counts == size).flatten()
            members = elements[counts[numbers] == size].view(len(rows), size, -1)
            gram = members @ members.transpose(1, 2)
            gram = gram + self.ridge * torch.eye(size, dtype=gram.dtype, device=gram.device)
            weights = torch.linalg.solve(gram, gram.new_ones(len(rows), size, 1))
            out = out.index_add(0, rows, (weights * members).sum(1))
        return unit(out)


class NetVLAD(nn.Module):
    """Soft-assigned residuals to K centres (eq. 1); a_k, b_k and c_k are trained independently.

    The paper's modification: an element's total contribution (its K weighted residuals together) is
    L2-normalised before the sum, so that each face weighs the same. The output is laid out cluster by
    cluster: entry ``k * element_dim + j`` is V(j, k).
    """

    def __init__(self, element_dim: int, clusters: int) -> None:
        super().__init__()
        self.element_dim, self.clusters = element_dim, clusters
        self.a = nn.Parameter(torch.randn(clusters, element_dim) / element_dim**0.5)
        self.b = nn.Parameter(torch.zeros(clusters))
        self.c = nn.Parameter(torch.randn(clusters, element_dim) / element_dim**0.5)

    def contributions(self, elements: Tensor) -> Tensor:
        """Return each element's unit-norm contribution, (n, clusters * element_dim)."""
        weights = torch.softmax(elements @ self.a.T + self.b, dim=1)
        residuals = weights[:, :, None] * (elements[:, None, :] - self.c)
        return unit(residuals.flatten(1))

    def forward(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the L2-normalised sum of the contributions of each set."""
        return unit(ragged_sum(self.contributions(elements), counts))


class NetVLADAggregator(AggregatorModule):
    """SetNet's aggregator: NetVLAD, fully-connected layer to `dim`, batch norm, L2."""

    def __init__(self, element_dim: int, dim: int, clusters: int = 8) -> None:
        super().__init__(element_dim, dim)
        self.vlad: NetVLAD | Average = NetVLAD(element_dim, clusters)
        self.fc = nn.Linear(clusters * element_dim, dim, bias=False)  # batch norm's shift is its bias
        self.norm = nn.BatchNorm1d(dim)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return one unit vector per set."""
        return unit(self.norm(self.fc(self.vlad(elements, counts))))


class AverageFC(NetVLADAggregator):
    """Average pooling with what follows NetVLAD: fully-connected layer, batch norm, L2."""

    def __init__(self, element_dim: int, dim: int) -> None:
        super().__init__(element_dim, dim, 1)
        self.vlad = Average(element_dim)


class HashedNetVLAD(NetVLADAggregator):
    """AggNet's aggregator: NetVLAD, a fully-connected layer of as many dimensions, batch norm and signs.

    Signs have no gradient: in training the hyperbolic tangent of the same numbers stands for them. At run
    time set vectors are signs, and queries the tangents. (Gheisari and others, "AggNet", 2022.)
    """

    def __init__(self, element_dim: int, clusters: int = 8) -> None:
        super().__init__(element_dim, clusters * element_dim, clusters)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return one vector per set, its entries nearly signs, at unit length."""
        return unit(torch.tanh(self.norm(self.fc(self.vlad(elements, counts)))))


class WhiteningLayer(nn.Module):
    """A `setnet.heads.Whitening` in torch; applied to set vectors, or to descriptors before aggregation."""

    mean: Tensor
    matrix: Tensor

    def __init__(self, mean: Tensor, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("matrix", matrix)

    @classmethod
    def fit(cls, vectors: Tensor, ridge: float = 0.01) -> WhiteningLayer:
        """Return the whitening of the rows of `vectors`; see `setnet.heads.fit_whitening`."""
        found = fit_whitening(vectors.detach().numpy(), ridge)
        return cls(torch.from_numpy(found.mean), torch.from_numpy(found.matrix))

    def forward(self, vectors: Tensor) -> Tensor:
        """Return whitened rows at unit norm."""
        return unit((vectors - self.mean) @ self.matrix)


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


def principal_axes(pooled: Tensor, dim: int) -> Tensor:
    """Return the first `dim` principal components of NetVLAD's output as rows."""
    if len(pooled) <= dim:
        raise TrainingError(f"PCA to {dim} dimensions needs more than {dim} sets, got {len(pooled)}")
    rows = pooled.detach().double()
    rows = rows - rows.mean(0)
    last = rows.shape[1] - 1
    # Not a full SVD: of 4,096 dimensions only the first are wanted, and this finds no others.
    variance, axes = eigh((rows.T @ rows).numpy(), subset_by_index=[max(0, last + 1 - dim), last])
    if len(variance) < dim or variance[0] < 1e-12 * variance[-1]:
        raise TrainingError(
            f"NetVLAD's output varies in fewer than {dim} directions: "
            "use fewer output dimensions or more training faces"
        )
    return torch.from_numpy(axes[:, ::-1].T.copy())


def initialise_reduction(fc: nn.Linear, norm: nn.BatchNorm1d, axes: Tensor, pooled: Tensor) -> None:
    """Put axes into `fc`, and the statistics of what they make of NetVLAD's output into `norm`."""
    with torch.no_grad():
        fc.weight.copy_(axes)
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
) -> float | None:
    """Initialise a SetNet aggregator from labelled training elements; return the alpha used."""
    used = None
    if isinstance(aggregator.vlad, NetVLAD):
        used = initialise_netvlad(aggregator.vlad, elements, seed, alpha)
    indices, counts = random_sets(labels, sizes, number, np.random.default_rng(seed))
    with torch.no_grad():
        # Piece by piece: K x D_e times all elements at once would be gigabytes for large K.
        pieces, start = [], 0
        for piece in np.array_split(counts, max(1, number // 500)):
            stop = start + int(piece.sum())
            pieces.append(aggregator.vlad(elements[indices[start:stop]], torch.from_numpy(piece)))
            start = stop
    pooled = torch.cat(pieces)
    if isinstance(aggregator, HashedNetVLAD):  # a sign tells most of a sum of many entries
        axes = nn.init.orthogonal_(torch.empty(aggregator.dim, aggregator.dim))
    else:
        axes = principal_axes(pooled, aggregator.dim)
    initialise_reduction(aggregator.fc, aggregator.norm, axes, pooled)
    return used
