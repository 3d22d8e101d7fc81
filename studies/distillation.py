"""Trains the end of a network on cached features of its frozen blocks, near the descriptors that it had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setnet.errors import InvalidInputError, TrainingError
from setnet.train import SetNetwork, TrainingSettings
from setnet.train.loop import TrainReport, make_deterministic, train_loop
from setnet.train.sources import LabelledSource, stream
from setnet.train.training import batch_loss, calibrate_network, compute_elements, set_sizes
from studies.features import Features


class FeatureSource(LabelledSource):
    """Features of faces, a row for each copy of each photo; every copy counts as a face of its person.

    Attributes
    ----------
    targets
        The unit descriptor that each row should have: that of its photo by the network as it was.
    """

    def __init__(
        self, features: Features, labels: NDArray[np.int64], targets: Tensor, where: str = "features"
    ) -> None:
        if not len(features) == len(labels) == len(targets):
            raise TrainingError(
                f"{where}: {len(features)} features, {len(labels)} labels and {len(targets)} targets "
                "must be as many"
            )
        super().__init__(labels, where)
        self.features, self.targets = features, targets

    def only(self, rows: NDArray[np.int64]) -> FeatureSource:
        """Return a source of some rows."""
        return FeatureSource(self.features[rows], self.labels[rows], self.targets[rows], self.where)

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the features; there is nothing to augment."""
        return torch.from_numpy(np.asarray(self.features[picks], np.float32))


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
    make_deterministic(settings.seed)
    schedule = settings.sets
    original = [weights.detach().clone() for weights in network.backbone.parameters()]
    draw = source.sample(np.random.default_rng(settings.seed), CALIBRATED_ON)
    network.eval()
    elements = compute_elements(network, source, draw.picks)
    calibrate_network(network, elements, draw.labels, schedule.sizes, settings.seed)
    network.train()
    for part in network.backbone.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eval()

    def step_loss(step: int) -> Tensor:
        rng = stream(settings.seed, step)
        draw = source.draw(rng, schedule.identities, 2)
        counts = torch.from_numpy(set_sizes(schedule.identities, schedule.sizes, rng))
        elements = network.elements(source.load(draw.picks, None))
        loss = batch_loss(network, elements, torch.from_numpy(draw.labels), counts, schedule.loss)
        away = 1.0 - (elements * source.targets[draw.picks]).sum(1)
        loss = distil * away.mean() + (1.0 - distil) * loss
        return loss + 0.5 * schedule.weight_decay * _squared_shift(network.backbone, original)

    report = train_loop(
        "adapt",
        network,
        step_loss,
        replace(schedule, weight_decay=0.0),
        folder=folder,
        settings={"people": source.people, "distil": distil} | settings.part("backbone", "sets"),
        samples=2 * schedule.identities,
        stop_at=stop_at,
    )
    network.eval()
    return report


def _squared_shift(module: nn.Module, original: list[Tensor]) -> Tensor:
    """Return the squared distance of all weights from where they were."""
    pairs = zip(module.parameters(), original, strict=True)
    return torch.stack([((now - before) ** 2).sum() for now, before in pairs]).sum()
