"""Virtual people: descriptors drawn from the between- and within-person spread of real training people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setnet.errors import TrainingError
from setnet.learn.descriptor_source import DescriptorSource
from setnet.learn.source import Draw

__all__ = ["VirtualSource"]

Doubles = NDArray[np.float64]


class VirtualSource:
    """An endless supply of people who never repeat: a few hundred real ones are soon learnt by heart.

    A face is ``unit(mean + B z_person + q W z_face)``: B and W are square roots of the between- and
    within-person covariance, and q, drawn from the lengths of real deviations, makes good and poor photos.
    """

    def __init__(self, mean: Doubles, between: Doubles, within: Doubles, qualities: Doubles) -> None:
        self.mean, self.between, self.within, self.qualities = mean, between, within, qualities
        self.where = "virtual people"
        self.people = 0  # no fixed number

    @classmethod
    def fit(cls, real: DescriptorSource) -> VirtualSource:
        """Return virtual people like those of `real`."""
        rows = real.descriptors / np.linalg.norm(real.descriptors, axis=1, keepdims=True)
        if len(real.members) < 10:
            raise TrainingError(
                f"{real.where}: {len(real.members)} people with two faces; virtual people need 10 real ones"
            )
        mean = rows[real.faces].mean(0).astype(np.float64)
        centres = np.array([rows[m].mean(0) for m in real.members], dtype=np.float64)
        sizes = np.array([len(m) for m in real.members], dtype=np.float64)
        # A mean of n faces is nearer to each of them than the person's true centre by sqrt((n - 1) / n).
        residuals = np.concatenate(
            [
                (rows[m] - c) * np.sqrt(len(m) / (len(m) - 1))
                for m, c in zip(real.members, centres, strict=True)
            ]
        )
        within = residuals.T @ residuals / len(residuals)
        spread = (centres - mean).T @ (centres - mean) / len(centres)
        between = spread - within * np.mean(1.0 / sizes)  # centres also carry their faces' noise
        inverse = np.linalg.pinv(within + 1e-6 * np.trace(within) / len(within) * np.eye(len(within)))
        lengths = np.sqrt(np.einsum("ij,jk,ik->i", residuals, inverse, residuals))
        qualities = np.clip(lengths / np.sqrt(np.mean(lengths**2)), 0.3, 3.0)
        return cls(mean, _root(between), _root(within), qualities)

    def draw(self, rng: np.random.Generator, people: int, per_person: int) -> Draw:
        """Return `per_person` blocks of one face each of the same `people` new people."""
        dim = len(self.mean)
        centres = self.mean + rng.standard_normal((people, dim)) @ self.between
        faces = rng.standard_normal((per_person, people, dim)) @ self.within
        faces *= rng.choice(self.qualities, (per_person, people, 1))
        rows = (centres[None] + faces).reshape(-1, dim).astype(np.float32)
        return Draw(np.tile(np.arange(people), per_person), rows)

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the drawn descriptors at unit norm."""
        return torch.nn.functional.normalize(torch.from_numpy(np.ascontiguousarray(picks)), dim=1)

    def sample(self, rng: np.random.Generator, limit: int) -> Draw:
        """Return `limit` faces, four of each person."""
        return self.draw(rng, max(limit // 4, 2), 4)


def _root(covariance: Doubles) -> Doubles:
    """Return R with R^T R = covariance, negative directions of the estimate dropped."""
    values, axes = np.linalg.eigh(covariance)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T)
