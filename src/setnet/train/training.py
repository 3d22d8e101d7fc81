"""Training in place: a backbone on identities, a network on sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from setnet.errors import TrainingError, choice_error
from setnet.train.aggregators import NetVLADAggregator, initialise_aggregator, random_sets, set_numbers
from setnet.train.backbones import Backbone
from setnet.train.calibration import calibrate_sets
from setnet.train.faces import FaceSource
from setnet.train.loop import (
    ProcessGroup,
    TrainReport,
    latest_checkpoint,
    make_deterministic,
    synchronise_norms,
    train_loop,
)
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


@lru_cache(2)
def _shuffle(seed: int, epoch: int, count: int) -> np.ndarray:
    """Return the order of an epoch; of millions of faces it takes longer than a step, so it is kept."""
    return np.random.default_rng((seed, epoch)).permutation(count)


def batch_of_step(faces: np.ndarray, seed: int, step: int, batch: int) -> np.ndarray:
    """Return the faces of a step: every epoch is a new shuffle, cut into batches that may span two epochs."""
    rows: list[np.ndarray] = []
    start, wanted = step * batch, batch
    while wanted > 0:
        epoch, at = divmod(start, len(faces))
        rows.append(faces[_shuffle(seed, epoch, len(faces))[at : at + wanted]])
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
    make_deterministic(settings.seed)
    classes = np.unique(source.labels[source.faces])
    model = Classifier(backbone, len(classes)).to(device)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    synchronise_norms(model, group)
    model.train()
    schedule = settings.pretrain

    def step_loss(step: int) -> Tensor:
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
        step_loss,
        schedule,
        folder=folder,
        settings=stored,
        samples=schedule.batch,
        group=group,
        stop_at=stop_at,
    )
    model.eval()
    return report


def membership(query_labels: Tensor, set_labels: Tensor, counts: Tensor) -> Tensor:
    """Return y of eq. 2, (queries, sets): is the query's person among the set's elements?

    >>> membership(torch.tensor([7, 8]), torch.tensor([7, 9, 8]), torch.tensor([2, 1])).int().tolist()
    [[1, 0], [0, 1]]
    """
    same = query_labels[:, None] == set_labels[None, :]
    found = torch.zeros(len(query_labels), len(counts), device=same.device)
    found = found.index_add(1, set_numbers(counts), same.to(found.dtype))
    return found > 0


def balanced_logistic(logits: Tensor, members: Tensor) -> Tensor:
    """Return eq. 2 per set, positives and negatives each divided by their count, averaged over the sets.

    Parameters
    ----------
    logits
        (queries, sets): w <v_f, v_set> + b.
    members
        (queries, sets) bool, from `membership`.
    """
    y = members.to(logits.dtype)
    positive = (functional.softplus(-logits) * y).sum(0) / y.sum(0).clamp_min(1)
    negative = (functional.softplus(logits) * (1 - y)).sum(0) / (1 - y).sum(0).clamp_min(1)
    return (positive + negative).mean()


def contrastive(logits: Tensor, members: Tensor) -> Tensor:
    """Return the cross-entropy of each true (query, set) pair against wrong sets and wrong queries.

    The softmax puts its weight on the wrong pairs nearest the top; w plays the part of the inverse
    temperature (b cancels).
    """
    wrong = logits.masked_fill(members, -torch.inf)
    losses = []
    for axis in (1, 0):
        rest = torch.logsumexp(wrong, dim=axis, keepdim=True)
        losses.append(functional.softplus(rest - logits)[members].mean())
    return (losses[0] + losses[1]) / 2


LOSSES = {"logistic": balanced_logistic, "contrastive": contrastive}


def set_loss(name: str, logits: Tensor, members: Tensor) -> Tensor:
    """Return the loss called `name`; ranking losses keep half of eq. 2 so that w and b stay fitted."""
    if name not in LOSSES:
        raise choice_error("loss", name, LOSSES)
    logistic = balanced_logistic(logits, members)
    return logistic if name == "logistic" else 0.5 * logistic + LOSSES[name](logits, members)


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
    make_deterministic(settings.seed)
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


def compute_elements(
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
    elements = compute_elements(network, source, draw.picks, device)
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
