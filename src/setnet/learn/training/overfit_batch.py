"""Overfits one fixed batch in both training phases: does the loss fall, how long does a step take?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from setnet.errors import TrainingError
from setnet.learn.data.face_source import FaceFolder
from setnet.learn.data.source import stream
from setnet.learn.models.aggregators.netvlad import NetVLADAggregator
from setnet.learn.models.backbones.backbone import InputSpec
from setnet.learn.models.model_file import new_backbone, new_network
from setnet.learn.training.initialise import initialise_netvlad
from setnet.learn.training.loop import deterministic, train_loop
from setnet.learn.training.pretrain import Classifier
from setnet.learn.training.set_training import batch_loss, set_sizes
from setnet.learn.training.training_settings import Schedule, TrainingSettings

Say = Callable[[str], None]


@dataclass(frozen=True)
class OverfitReport:
    """The loss before each step, and the seconds it took: by the clock, and of processor time."""

    losses: tuple[float, ...]
    seconds: tuple[float, ...]
    processor_seconds: tuple[float, ...]

    @property
    def seconds_per_step(self) -> float:
        """The median time of a step, the first one (which warms up) left out."""
        return float(np.median(self.seconds[1:] or self.seconds))


def overfit_batch(
    settings: TrainingSettings, steps: int = 20, data: Path | None = None, say: Say = lambda text: None
) -> tuple[OverfitReport, OverfitReport]:
    """Train on one batch again and again: `steps` of softmax pre-training, then `steps` of set training.

    The batch is drawn from the folders of identities in `data`, or made of noise patterns, one pattern per
    person, when no data is given. Rates, decay, batch size and loss are the settings'.
    """
    deterministic(settings.seed)
    backbone = new_backbone(settings)
    if backbone.spec is None:
        raise TrainingError("this needs a backbone that takes photos: resnet50, senet50 or mobile")
    people = settings.sets.identities
    if data is None:
        faces, labels = _noise(backbone.spec, people, settings.seed)
    else:
        source = FaceFolder(data, backbone.spec, settings.augment)
        draw = source.draw(stream(settings.seed, 0), people, 2)
        faces = source.load(draw.picks, [stream(settings.seed, 0, i + 1) for i in range(2 * people)])
        labels = torch.from_numpy(np.unique(draw.labels, return_inverse=True)[1])
    classifier = Classifier(backbone, people).train()
    classifier.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def softmax_loss(step: int) -> Tensor:
        return functional.cross_entropy(classifier(faces), labels)

    first = _timed("pretrain", classifier, softmax_loss, settings.pretrain, steps, say)
    network = new_network(backbone, settings).train()
    if isinstance(network.aggregator, NetVLADAggregator):
        # PCA needs far more sets than one batch holds; centres do not.
        with torch.no_grad():
            initialise_netvlad(network.aggregator.vlad, network.elements(faces), settings.seed)
    counts = torch.from_numpy(set_sizes(people, settings.sets.sizes, stream(settings.seed, 0)))

    def sets_loss(step: int) -> Tensor:
        return batch_loss(network, network.elements(faces), labels, counts, settings.sets.loss)

    return first, _timed("sets", network, sets_loss, settings.sets, steps, say)


def _timed(
    title: str, module: nn.Module, loss_of: Callable[[int], Tensor], schedule: Schedule, steps: int, say: Say
) -> OverfitReport:
    losses: list[float] = []
    clock, processor = [time.perf_counter()], [time.process_time()]

    def on_step(step: int, loss: float) -> None:
        losses.append(loss)
        clock.append(time.perf_counter())
        processor.append(time.process_time())
        say(f"{title} {step}/{steps}  loss {loss:.4f}  {clock[-1] - clock[-2]:.1f} s")

    train_loop(title, module, loss_of, schedule, stop_at=steps, on_step=on_step)
    seconds, processor_seconds = (tuple(np.diff(times).tolist()) for times in (clock, processor))
    return OverfitReport(tuple(losses), seconds, processor_seconds)


def _noise(spec: InputSpec, people: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randn(people, 3, 7, 7, generator=generator).repeat(2, 1, 1, 1) * 60
    faces = functional.interpolate(patterns, size=(spec.size, spec.size), mode="bilinear")
    faces = (faces + 20 * torch.randn(faces.shape, generator=generator)) / spec.std[0]
    return faces.contiguous(memory_format=torch.channels_last), torch.arange(people).repeat(2)
