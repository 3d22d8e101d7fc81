"""Adapting the end of a trained network to degraded photos, without leaving what it has learned.

A degraded copy is drawn towards the descriptor that the photo itself had (distillation), sets are told apart
by the set loss, and weights are drawn back to where they were.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from setnet.errors import InvalidInputError
from setnet.learn.data.feature_source import FeatureSource
from setnet.learn.data.source import stream
from setnet.learn.models.network import SetNetwork
from setnet.learn.training.loop import TrainReport, deterministic, train_loop
from setnet.learn.training.set_training import batch_loss, calibrate_network, elements_of, set_sizes
from setnet.learn.training.training_settings import SetSettings, TrainingSettings

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
