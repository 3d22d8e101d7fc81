"""A trial of the paper's training on one fixed batch: does the loss fall, and how long does a step take?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from setnet.learn.backbone import InputSpec
from setnet.learn.face_source import FaceFolder
from setnet.learn.initialise import initialise_netvlad
from setnet.learn.loop import deterministic, learning_rate, make_optimiser
from setnet.learn.model_file import new_backbone
from setnet.learn.netvlad import NetVLADAggregator
from setnet.learn.network import SetNetwork, make_aggregator
from setnet.learn.set_training import batch_loss, set_sizes
from setnet.learn.settings import Settings
from setnet.learn.source import stream

__all__ = ["Trial", "fixed_batch_trial"]


@dataclass(frozen=True)
class Trial:
    """The loss before each step and the seconds each took."""

    losses: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def seconds_per_step(self) -> float:
        """The median time of a step, the first one (which warms up) left out."""
        return float(np.median(self.seconds[1:] or self.seconds))


def fixed_batch_trial(
    settings: Settings,
    steps: int = 20,
    data: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Trial:
    """Train the whole network (backbone, NetVLAD, classifier) on one batch again and again.

    The batch is drawn from the folders of identities in `data`, or made of noise patterns, one pattern per
    person, when no data is given. Rates, decay, batch size and loss are the settings'.
    """
    deterministic(settings.seed)
    backbone = new_backbone(settings)
    assert backbone.spec is not None
    people = settings.sets.identities
    wanted = settings.aggregator
    network = SetNetwork(backbone, make_aggregator(wanted.name, backbone, wanted.dim, wanted.clusters))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if data is None:
        faces, labels = _noise(backbone.spec, people, settings.seed)
    else:
        source = FaceFolder(data, backbone.spec, settings.augment)
        draw = source.draw(stream(settings.seed, 0), people, 2)
        faces = source.load(draw.picks, [stream(settings.seed, 0, i + 1) for i in range(2 * people)])
        labels = torch.from_numpy(draw.labels)
    counts = torch.from_numpy(set_sizes(people, settings.sets.sizes, stream(settings.seed, 0)))
    network.train()
    if isinstance(network.aggregator, NetVLADAggregator):
        # PCA needs far more sets than one batch holds; centres do not.
        with torch.no_grad():
            initialise_netvlad(network.aggregator.vlad, network.elements(faces), settings.seed)
    optimiser = make_optimiser(network, settings.sets)
    losses, seconds = [], []
    for step in range(steps):
        started = time.perf_counter()
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(settings.sets, step)
        optimiser.zero_grad(set_to_none=True)
        loss = batch_loss(network, network.elements(faces), labels, counts, settings.sets.loss)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - started)
        say(f"step {step + 1}/{steps}  loss {losses[-1]:.4f}  {seconds[-1]:.1f} s")
    return Trial(tuple(losses), tuple(seconds))


def _noise(spec: InputSpec, people: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randn(people, 3, 7, 7, generator=generator).repeat(2, 1, 1, 1) * 60
    faces = torch.nn.functional.interpolate(patterns, size=(spec.size, spec.size), mode="bilinear")
    faces = faces + 20 * torch.randn(faces.shape, generator=generator)
    return faces.contiguous(memory_format=torch.channels_last), torch.arange(people).repeat(2)
