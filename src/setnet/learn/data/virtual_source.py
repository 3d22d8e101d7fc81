"""Virtual people as a training source: any number of identities, where a network overfits a few hundred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setnet.learn.data.descriptor_source import DescriptorSource
from setnet.learn.data.source import Draw, TrainingSource
from setnet.learn.data.virtual_people import VirtualPeople


class VirtualSource(TrainingSource):
    """An endless supply of people drawn from a `VirtualPeople` model."""

    def __init__(self, model: VirtualPeople) -> None:
        self.model = model
        self.where = "virtual people"
        self.people = 0  # no fixed number

    @classmethod
    def fit(cls, real: DescriptorSource) -> VirtualSource:
        """Return virtual people like those of `real`, their photos as good and as poor."""
        rows, owner = real.descriptors[real.faces], real.labels[real.faces]
        return cls(with_quality(VirtualPeople.fit(rows, owner), rows, owner))

    def draw(self, rng: np.random.Generator, people: int, per_person: int) -> Draw:
        """Return `per_person` blocks of one face each of the same `people` new people."""
        crowd = self.model.people(rng, people)
        labels = np.tile(np.arange(people, dtype=np.int64), per_person)
        return Draw(labels, self.model.faces(rng, crowd, labels))

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the drawn descriptors; they have unit norm."""
        return torch.from_numpy(np.ascontiguousarray(picks))

    def sample(self, rng: np.random.Generator, limit: int) -> Draw:
        """Return `limit` faces, four of each person."""
        return self.draw(rng, max(limit // 4, 2), 4)


def with_quality(model: VirtualPeople, rows: NDArray[np.float32], owner: NDArray[np.int64]) -> VirtualPeople:
    """Return the model with its spread of quality fitted: how much deviations vary in length.

    The logarithm of a deviation's length varies between people and between photos; what chance alone gives
    Gaussian deviations is taken off, and the mean square deviation is kept.
    """
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    logs, numbers = [], []
    for person in np.unique(owner):
        own = unit[owner == person]
        if len(own) > 2:  # two faces deviate by the same length from their mean
            off = (own - own.mean(0)) * np.sqrt(len(own) / (len(own) - 1))
            logs.append(np.log(np.linalg.norm(off, axis=1) + 1e-12))
            numbers.append(len(own))
    if len(logs) < 10:
        return model
    variances = np.linalg.eigvalsh(model.within.astype(np.float64) @ model.within.T)
    chance = 0.5 * float((variances**2).sum() / variances.sum() ** 2)
    photos = float(np.mean([log.var(ddof=1) for log in logs]))
    people = float(np.var([log.mean() for log in logs], ddof=1)) - photos * float(
        np.mean(1 / np.array(numbers))
    )
    face, person = max(photos - chance, 0.0), max(people, 0.0)
    scale = np.float32(np.exp(-(face + person)))
    return replace(
        model,
        within=model.within * scale,
        person_spread=float(np.sqrt(person)),
        face_spread=float(np.sqrt(face)),
    )
