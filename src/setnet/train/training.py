"""Training in place: a backbone on identities, a network on sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from setnet.errors import TrainingError, choice_error
from setnet.train.aggregators import (
    Average,
    NetVLADAggregator,
    initialise_aggregator,
    random_sets,
    set_numbers,
)
from setnet.train.backbones import Backbone
from setnet.train.calibration import calibrate_sets, fit_logistic
from setnet.train.loop import (
    BatchLoader,
    ProcessGroup,
    TrainReport,
    latest_checkpoint,
    make_deterministic,
    mixed_precision,
    synchronise_norms,
    train_loop,
)
from setnet.train.network import SetNetwork
from setnet.train.settings import SetSettings, TrainingSettings
from setnet.train.sources import LabelledSource, TrainingSource, stream


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
    source: LabelledSource,
    settings: TrainingSettings,
    folder: Path,
    group: ProcessGroup | None = None,
    device: str = "cpu",
    stop_at: int | None = None,
    workers: int = 0,
    validation: LabelledSource | None = None,
) -> TrainReport:
    """Train `backbone` in place by softmax over the people of `source`; resumes from `folder`.

    `workers` processes load the faces. With `validation` people the result is the best checkpoint.
    """
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
    _freeze(backbone, schedule.freeze, schedule.freeze)
    backbone.reduce.requires_grad_(True)

    def load(step: int) -> tuple[Tensor, Tensor]:
        picks = batch_of_step(source.faces, settings.seed, step, schedule.batch)
        share = group.share(len(picks))
        streams = [stream(settings.seed, step, i) for i in range(*share.indices(len(picks)))]
        labels = torch.from_numpy(np.searchsorted(classes, source.labels[picks[share]]))
        return source.load(picks[share], streams), labels

    source.prepare()
    batches = BatchLoader(load, workers, device)

    def step_loss(step: int) -> Tensor:
        images, labels = (part.to(device, non_blocking=True) for part in batches(step))
        with mixed_precision(schedule, device):
            logits = model(images)
        return functional.cross_entropy(logits.float(), labels, reduction="sum") / schedule.batch

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
        validate=_validator(SetNetwork(backbone, Average(backbone.dim)), validation, device, settings.seed),
    )
    model.eval()
    return report


def _freeze(backbone: Backbone, weights: bool, statistics: bool) -> None:
    """Decide whether a backbone's weights and batch-norm statistics stay as they are."""
    for parameter in backbone.parameters():
        parameter.requires_grad_(not weights)
    for part in backbone.modules():
        if isinstance(part, nn.BatchNorm2d) and statistics:
            part.eval()


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


Floats = NDArray[np.float32]
CALIBRATION_SETS = 500
VALIDATED = 4000  # faces of validation people, at most
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


def load_set_batch(
    source: TrainingSource, schedule: SetSettings, seed: int, step: int, group: ProcessGroup
) -> tuple[Tensor, Tensor, Tensor]:
    """Return this process's faces of a step, whose all faces are, and the sizes of the sets."""
    rng = stream(seed, step)
    draw = source.draw(rng, schedule.identities, 2)
    counts = set_sizes(schedule.identities, schedule.sizes, rng)
    share = group.share(len(draw.labels))
    streams = [stream(seed, step, i + 1) for i in range(*share.indices(len(draw.labels)))]
    return source.load(draw.picks[share], streams), torch.from_numpy(draw.labels), torch.from_numpy(counts)


def set_step_loss(
    network: SetNetwork,
    batch: Sequence[Tensor],
    schedule: SetSettings,
    group: ProcessGroup | None = None,
    device: str = "cpu",
) -> Tensor:
    """Return this process's share of the loss of a batch of `load_set_batch`."""
    group = group or ProcessGroup()
    faces, labels, counts = (part.to(device, non_blocking=True) for part in batch)
    with mixed_precision(schedule, device):
        own = network.elements(faces)
    elements = group.gather(own.to(network.w.dtype), len(labels))
    return batch_loss(network, elements, labels, counts, schedule.loss) / group.number


def train_sets(
    network: SetNetwork,
    source: TrainingSource,
    settings: TrainingSettings,
    folder: Path,
    group: ProcessGroup | None = None,
    device: str = "cpu",
    stop_at: int | None = None,
    workers: int = 0,
    validation: LabelledSource | None = None,
) -> TrainReport:
    """Initialise and train `network` in place; resumes from `folder`.

    `workers` processes load the faces. With `validation` people the result is the best checkpoint.
    """
    group = group or ProcessGroup()
    make_deterministic(settings.seed)
    schedule = settings.sets
    network.to(device)
    if latest_checkpoint(folder / "checkpoints") is None:  # a stored step brings its own weights
        initialise_network(network, source, settings, device)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    synchronise_norms(network, group)
    network.train()
    _freeze(network.backbone, schedule.freeze, schedule.freeze or schedule.freeze_norm)

    stored = {"people": source.people} | settings.part("backbone", "aggregator", "augment", "sets")
    source.prepare()
    batches = BatchLoader(
        lambda step: load_set_batch(source, schedule, settings.seed, step, group), workers, device
    )
    report = train_loop(
        "sets",
        network,
        lambda step: set_step_loss(network, batches(step), schedule, group, device),
        schedule,
        folder=folder,
        settings=stored,
        samples=2 * schedule.identities,
        group=group,
        stop_at=stop_at,
        validate=_validator(network, validation, device, settings.seed),
    )
    network.eval()
    return report


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Put a network into evaluation for a while; then each part is as it was: some norms may be frozen."""
    modes = [(part, part.training) for part in network.modules()]
    network.eval()
    yield
    for part, training in modes:
        part.training = training


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


@dataclass(frozen=True, eq=False)
class _Trial:
    """Random sets of labelled faces, with other faces of the same people as queries.

    `labels` are those of the queries; `members` says which query's person is in which set, (queries, sets).
    """

    queries: Floats
    sets: Floats
    labels: np.ndarray
    members: NDArray[np.bool_]


def _trial(
    network: SetNetwork, elements: Tensor, labels: np.ndarray, sizes: Sequence[int], seed: int
) -> _Trial:
    rng = np.random.default_rng(seed)
    # No more sets than leave half of the faces as queries.
    number = min(CALIBRATION_SETS, max(1, len(labels) // (2 * max(sizes))))
    indices, counts = random_sets(labels, sizes, number, rng)
    queries = np.setdiff1d(np.arange(len(labels)), indices)
    queries = queries[np.isin(labels[queries], labels[indices])][:2000]
    device = network.w.device
    with evaluating(network), torch.no_grad():
        sizes_of = torch.from_numpy(counts).to(device)
        sets = network.aggregate(elements[indices].to(device), sizes_of).cpu().numpy()
        vectors = network.describe(elements[queries].to(device)).cpu().numpy()
    members = membership(
        torch.from_numpy(labels[queries]), torch.from_numpy(labels[indices]), torch.from_numpy(counts)
    )
    return _Trial(vectors, sets, labels[queries], members.numpy())


def calibrate_network(
    network: SetNetwork, elements: Tensor, labels: np.ndarray, sizes: Sequence[int], seed: int
) -> None:
    """Fit the network's (w, b) on random sets, with other faces of the same people as queries."""
    trial = _trial(network, elements, labels, sizes, seed)
    fit = calibrate_sets(trial.queries, trial.sets, trial.members).logistic
    with torch.no_grad():
        network.w.fill_(fit.w)
        network.b.fill_(fit.b)


VALIDATED_SIZES = (2, 3, 4, 5)


def validation_ndcg(network: SetNetwork, elements: Tensor, labels: np.ndarray, seed: int = 0) -> float:
    """Return nDCG@10 in percent of searches for two people who share one of many random sets.

    The sets have 2 to 5 faces; scores are those of eq. 2 with the (w, b) that fits these people best.
    """
    trial = _trial(network, elements, labels, VALIDATED_SIZES, seed)
    similarity = trial.queries @ trial.sets.T
    fit = fit_logistic(similarity[trial.members], similarity[~trial.members]).logistic
    scores = 1 / (1 + np.exp(-np.clip(fit.w * similarity + fit.b, -80, 80)))
    found = []
    for together in trial.members.T:
        _, first = np.unique(trial.labels[together], return_index=True)
        if len(first) < 2:
            continue  # nobody's other face is left to ask with
        pair = np.flatnonzero(together)[first[:2]]
        relevance = trial.members[pair].sum(axis=0)
        ranked = relevance[np.argsort(-scores[pair].sum(axis=0), kind="stable")]
        discounts = 1 / np.log2(np.arange(2, 2 + min(10, len(ranked))))
        gains = [(2.0 ** one[:10] - 1) @ discounts for one in (ranked, np.sort(relevance)[::-1])]
        found.append(100 * gains[0] / gains[1])
    if not found:
        raise TrainingError(
            f"{len(labels)} faces of validation people are too few to search: hold out more people"
        )
    return float(np.mean(found))


def _validator(
    network: SetNetwork, source: LabelledSource | None, device: str, seed: int
) -> Callable[[], float] | None:
    """Return what measures `validation_ndcg` of the network as it is."""
    if source is None:
        return None
    draw = source.sample(np.random.default_rng(seed), VALIDATED)

    def validate() -> float:
        with evaluating(network):
            elements = compute_elements(network, source, draw.picks, device)
        return validation_ndcg(network, elements, draw.labels, seed)

    return validate
