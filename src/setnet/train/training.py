"""Training in place: a backbone on identities, a network on sets, and adaptation of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy.linalg import eigh
from torch import Tensor, nn
from torch.nn import functional

from setnet.errors import InvalidInputError, TrainingError
from setnet.train.aggregators import NetVLAD, NetVLADAggregator
from setnet.train.backbones import Backbone
from setnet.train.calibration import calibrate_sets
from setnet.train.distributed import ProcessGroup, synchronise_norms
from setnet.train.faces import FaceSource, FeatureSource
from setnet.train.loop import TrainReport, deterministic, latest_checkpoint, train_loop
from setnet.train.losses import membership, set_loss
from setnet.train.network import SetNetwork
from setnet.train.settings import SetSettings, TrainingSettings
from setnet.train.sources import TrainingSource, stream


class Classifier(nn.Module):
    """A backbone with a linear classifier over the training identities, dropped after pre-training."""

    def __init__(self, backbone: Backbone, people: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.classes = nn.Linear(backbone.dim, people)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (n, people)."""
        out: Tensor = self.classes(self.backbone(images))
        return out


def batch_of_step(faces: np.ndarray, seed: int, step: int, batch: int) -> np.ndarray:
    """Return the faces of a step: every epoch is a new shuffle, cut into batches that may span two epochs."""
    rows: list[np.ndarray] = []
    start, wanted = step * batch, batch
    while wanted > 0:
        epoch, at = divmod(start, len(faces))
        order = np.random.default_rng((seed, epoch)).permutation(len(faces))
        rows.append(faces[order[at : at + wanted]])
        start += len(rows[-1])
        wanted -= len(rows[-1])
    return np.concatenate(rows)


def pretrain(
    backbone: Backbone,
    source: FaceSource,
    settings: TrainingSettings,
    folder: Path,
    group: ProcessGroup | None = None,
    device: str = "cpu",
    stop_at: int | None = None,
) -> TrainReport:
    """Train `backbone` in place by softmax over the people of `source`; resumes from `folder`."""
    if backbone.spec is None:
        raise TrainingError(
            "descriptors already computed have nothing to pre-train: go on with `setnet train sets`"
        )
    group = group or ProcessGroup()
    deterministic(settings.seed)
    classes = np.unique(source.labels[source.faces])
    model = Classifier(backbone, len(classes)).to(device)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    synchronise_norms(model, group)
    model.train()
    schedule = settings.pretrain

    def loss_of(step: int) -> Tensor:
        picks = batch_of_step(source.faces, settings.seed, step, schedule.batch)
        share = group.share(len(picks))
        streams = [stream(settings.seed, step, i) for i in range(*share.indices(len(picks)))]
        images = source.load(picks[share], streams).to(device)
        labels = torch.from_numpy(np.searchsorted(classes, source.labels[picks[share]])).to(device)
        return functional.cross_entropy(model(images), labels, reduction="sum") / len(picks)

    stored = {"people": len(classes)} | settings.part("backbone", "augment", "pretrain")
    report = train_loop(
        "pretrain",
        model,
        loss_of,
        schedule,
        folder=folder,
        settings=stored,
        samples=schedule.batch,
        group=group,
        stop_at=stop_at,
    )
    model.eval()
    return report


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


CALIBRATION_SETS = 500
SAMPLE = 20_000  # faces that initialisation, whitening and calibration look at, at most


def set_sizes(people: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Return set sizes drawn from `sizes` that use all `people` of a batch; the last set takes what is left.

    >>> set_sizes(42, [3], np.random.default_rng(0)).tolist() == [3] * 14
    True
    """
    out: list[int] = []
    while sum(out) < people:
        out.append(min(int(rng.choice(np.asarray(sizes))), people - sum(out)))
    return np.array(out, dtype=np.int64)


def batch_loss(network: SetNetwork, elements: Tensor, labels: Tensor, counts: Tensor, loss: str) -> Tensor:
    """Return the loss of a batch: the first half of `elements` makes the sets, the second half the queries.

    Sets and queries pass the aggregator together, so that batch norm sees the mixture it will meet in use.
    """
    people = len(elements) // 2
    ones = torch.ones(people, dtype=counts.dtype, device=counts.device)
    vectors = network.aggregate(elements, torch.cat([counts, ones]))
    sets, queries = vectors[: len(counts)], vectors[len(counts) :]
    members = membership(labels[people:], labels[:people], counts)
    return set_loss(loss, network.logits(queries, sets), members)


def set_step_loss(
    network: SetNetwork,
    source: TrainingSource,
    schedule: SetSettings,
    seed: int,
    step: int,
    group: ProcessGroup | None = None,
    device: str = "cpu",
) -> Tensor:
    """Return this process's share of the loss of a step, on a batch that seed and step number decide."""
    group = group or ProcessGroup()
    rng = stream(seed, step)
    draw = source.draw(rng, schedule.identities, 2)
    counts = torch.from_numpy(set_sizes(schedule.identities, schedule.sizes, rng)).to(device)
    total = len(draw.labels)
    share = group.share(total)
    streams = [stream(seed, step, i + 1) for i in range(*share.indices(total))]
    faces = source.load(draw.picks[share], streams).to(device)
    elements = group.gather(network.elements(faces), total)
    labels = torch.from_numpy(draw.labels).to(device)
    return batch_loss(network, elements, labels, counts, schedule.loss) / group.number


def train_sets(
    network: SetNetwork,
    source: TrainingSource,
    settings: TrainingSettings,
    folder: Path,
    group: ProcessGroup | None = None,
    device: str = "cpu",
    stop_at: int | None = None,
) -> TrainReport:
    """Initialise and train `network` in place; resumes from `folder`."""
    group = group or ProcessGroup()
    deterministic(settings.seed)
    schedule = settings.sets
    network.to(device)
    if latest_checkpoint(folder / "checkpoints") is None:  # a stored step brings its own weights
        initialise_network(network, source, settings, device)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for parameter in network.backbone.parameters():
        parameter.requires_grad_(not schedule.freeze)
    synchronise_norms(network, group)
    network.train()
    if schedule.freeze or schedule.freeze_norm:
        for part in network.backbone.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.eval()

    stored = {"people": source.people} | settings.part("backbone", "aggregator", "augment", "sets")
    report = train_loop(
        "sets",
        network,
        lambda step: set_step_loss(network, source, schedule, settings.seed, step, group, device),
        schedule,
        folder=folder,
        settings=stored,
        samples=2 * schedule.identities,
        group=group,
        stop_at=stop_at,
    )
    network.eval()
    return report


def elements_of(
    network: SetNetwork, source: TrainingSource, picks: np.ndarray, device: str = "cpu"
) -> Tensor:
    """Return the elements of faces, without augmentation and without gradients, in pieces."""
    pieces = []
    with torch.no_grad():
        for start in range(0, len(picks), 256):
            batch = source.load(picks[start : start + 256], None)
            pieces.append(network.elements(batch.to(device)).cpu())
    return torch.cat(pieces)


def initialise_network(
    network: SetNetwork, source: TrainingSource, settings: TrainingSettings, device: str = "cpu"
) -> None:
    """Initialise the aggregator from data (k-means, PCA, batch-norm statistics) and calibrate (w, b)."""
    network.eval()
    draw = source.sample(np.random.default_rng(settings.seed), SAMPLE)
    elements = elements_of(network, source, draw.picks, device)
    aggregator = network.aggregator
    if isinstance(aggregator, NetVLADAggregator):
        aggregator.cpu()
        wanted = settings.aggregator
        initialise_aggregator(
            aggregator,
            elements,
            draw.labels,
            sizes=sorted({1, *settings.sets.sizes}),
            number=wanted.start_sets,
            seed=settings.seed,
            alpha=wanted.alpha or None,
        )
        aggregator.to(device)
    calibrate_network(network, elements, draw.labels, settings.sets.sizes, settings.seed)


def calibrate_network(
    network: SetNetwork, elements: Tensor, labels: np.ndarray, sizes: Sequence[int], seed: int
) -> None:
    """Fit the network's (w, b) on random sets, with other faces of the same people as queries."""
    rng = np.random.default_rng(seed)
    # No more sets than leave half of the faces as queries.
    number = min(CALIBRATION_SETS, max(1, len(labels) // (2 * max(sizes))))
    indices, counts = random_sets(labels, sizes, number, rng)
    queries = np.setdiff1d(np.arange(len(labels)), indices)
    queries = queries[np.isin(labels[queries], labels[indices])][:2000]
    device = network.w.device
    training = network.training
    network.eval()
    with torch.no_grad():
        sizes_of = torch.from_numpy(counts).to(device)
        sets = network.aggregate(elements[indices].to(device), sizes_of).cpu().numpy()
        vectors = network.describe(elements[queries].to(device)).cpu().numpy()
        members = membership(
            torch.from_numpy(labels[queries]), torch.from_numpy(labels[indices]), torch.from_numpy(counts)
        )
        fit = calibrate_sets(vectors, sets, members.numpy()).logistic
        network.w.fill_(fit.w)
        network.b.fill_(fit.b)
    network.train(training)


CALIBRATED_ON = 2000  # rows


def adapt(
    network: SetNetwork,
    source: FeatureSource,
    settings: TrainingSettings,
    folder: Path,
    distil: float = 0.9,
    stop_at: int | None = None,
) -> TrainReport:
    """Train `network`, whose backbone takes the features of `source`, in place; resumes from `folder`.

    Parameters
    ----------
    settings
        Those of set training: sets, schedule, and as weight decay how strongly weights are drawn back to
        where they were. Batch norm keeps its statistics.
    distil
        The share of distillation in the loss, from 0 to 1; the rest is the set loss.
    """
    if not 0 <= distil <= 1:
        raise InvalidInputError(f"the share of distillation is from 0 to 1, not {distil}")
    deterministic(settings.seed)
    schedule = settings.sets
    original = [weights.detach().clone() for weights in network.backbone.parameters()]
    draw = source.sample(np.random.default_rng(settings.seed), CALIBRATED_ON)
    network.eval()
    elements = elements_of(network, source, draw.picks)
    calibrate_network(network, elements, draw.labels, schedule.sizes, settings.seed)
    network.train()
    for part in network.backbone.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eval()

    def loss_of(step: int) -> Tensor:
        loss = step_loss(network, source, schedule, distil, settings.seed, step)
        return loss + 0.5 * schedule.weight_decay * _moved(network.backbone, original)

    report = train_loop(
        "adapt",
        network,
        loss_of,
        replace(schedule, weight_decay=0.0),
        folder=folder,
        settings={"people": source.people, "distil": distil} | settings.part("backbone", "sets"),
        samples=2 * schedule.identities,
        stop_at=stop_at,
    )
    network.eval()
    return report


def step_loss(
    network: SetNetwork, source: FeatureSource, schedule: SetSettings, distil: float, seed: int, step: int
) -> Tensor:
    """Return distillation and set loss of a batch that seed and step number decide."""
    rng = stream(seed, step)
    draw = source.draw(rng, schedule.identities, 2)
    counts = torch.from_numpy(set_sizes(schedule.identities, schedule.sizes, rng))
    elements = network.elements(source.load(draw.picks, None))
    away = 1.0 - (elements * source.targets[draw.picks]).sum(1)
    sets = batch_loss(network, elements, torch.from_numpy(draw.labels), counts, schedule.loss)
    return distil * away.mean() + (1.0 - distil) * sets


def _moved(module: nn.Module, original: list[Tensor]) -> Tensor:
    """Return the squared distance of all weights from where they were."""
    pairs = zip(module.parameters(), original, strict=True)
    return torch.stack([((now - before) ** 2).sum() for now, before in pairs]).sum()
