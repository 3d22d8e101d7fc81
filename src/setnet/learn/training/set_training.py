"""Set training (section 3.4): synthetic sets, and every query face against every set of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from setnet.learn.data.source import TrainingSource, stream
from setnet.learn.export.logistic_fit import calibrate_sets
from setnet.learn.models.aggregators.netvlad import NetVLADAggregator
from setnet.learn.models.loss import membership, set_loss
from setnet.learn.models.network import SetNetwork
from setnet.learn.training.checkpoint import latest_checkpoint
from setnet.learn.training.distributed import ProcessGroup, synchronise_norms
from setnet.learn.training.initialise import initialise_aggregator, random_sets
from setnet.learn.training.loop import TrainReport, deterministic, train_loop
from setnet.learn.training.training_settings import SetSettings, TrainingSettings

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
