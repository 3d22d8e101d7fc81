"""Softmax pre-training of a backbone on single faces (section 3.4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from setnet.errors import TrainingError
from setnet.learn.data.face_source import FaceSource
from setnet.learn.data.source import stream
from setnet.learn.models.backbones.backbone import Backbone
from setnet.learn.training.distributed import ProcessGroup, synchronise_norms
from setnet.learn.training.loop import TrainReport, deterministic, train_loop
from setnet.learn.training.training_settings import TrainingSettings


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
