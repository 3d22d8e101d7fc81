"""Sources of training data: what each can do, stored descriptors, and virtual people."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setnet.collect import CollectedSet
from setnet.collect.dataset import is_collected
from setnet.errors import TrainingError
from setnet.library import read_descriptors
from setnet.train.simulated import VirtualPeople


@dataclass(frozen=True)
class Draw:
    """Faces drawn for a batch: whose they are, and what the source needs to load them, a row per face."""

    labels: NDArray[np.int64]
    picks: NDArray[Any]


class TrainingSource:
    """A supply of faces of many people.

    Attributes
    ----------
    where
        Where they come from, for messages.
    people
        How many people it has; 0 when their number has no end.
    skipped
        How many people were left out because they have one face only.
    """

    where: str
    people: int
    skipped = 0

    def prepare(self) -> None:
        """Make once what `load` needs: called before worker processes load, which would each make it."""

    def draw(self, rng: np.random.Generator, people: int, per_person: int) -> Draw:
        """Return `per_person` blocks of one face each of the same `people` different people."""
        raise NotImplementedError

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the faces as a network's input; with one random stream per face they are augmented."""
        raise NotImplementedError

    def sample(self, rng: np.random.Generator, limit: int) -> Draw:
        """Return up to `limit` faces, for initialisation and whitening."""
        raise NotImplementedError


def stream(seed: int, step: int, position: int = 0) -> np.random.Generator:
    """Return the random stream of one face of one step.

    A pure function of its arguments: a resumed run and a run spread over processes draw the same numbers.
    """
    return np.random.default_rng((seed, step, position))


class LabelledSource(TrainingSource):
    """The drawing half of a source with a finite list of faces; subclasses load them.

    People with one face only cannot give a set face and a query face: left out, counted in `skipped`.
    """

    def __init__(self, labels: NDArray[np.int64], where: str) -> None:
        self.labels = labels
        order = np.argsort(labels, kind="stable")
        _, starts = np.unique(labels[order], return_index=True)
        groups = np.split(order, starts[1:]) if len(labels) else []
        self.members = [g for g in groups if len(g) > 1]
        self.people, self.skipped = len(self.members), len(groups) - len(self.members)
        self.faces = np.sort(np.concatenate(self.members)) if self.members else np.empty(0, np.int64)
        self.where = where
        if not self.members:
            found = f"{len(groups)} people with one face each" if groups else "no faces"
            raise TrainingError(f"{where}: {found}; training needs people with at least two faces")

    def hold_out(self, people: int) -> tuple[Self, Self]:
        """Return this source without some random people, and one of these people alone."""
        if not 0 <= people <= self.people // 2:
            raise TrainingError(
                f"{self.where}: {people} of {self.people} people cannot be held out: half at most"
            )
        order = np.random.default_rng((0, people)).permutation(self.people)
        return self._only(order[people:]), self._only(order[:people])

    def _only(self, numbers: NDArray[np.int64]) -> Self:
        part = copy(self)
        part.members = [self.members[number] for number in np.sort(numbers)]
        part.people = len(numbers)
        part.faces = np.sort(np.concatenate([np.empty(0, np.int64), *part.members]))
        return part

    def draw(self, rng: np.random.Generator, people: int, per_person: int) -> Draw:
        """Return `per_person` blocks of one face each of the same `people` different people."""
        if people > self.people:
            raise TrainingError(
                f"{self.where}: a batch needs {people} people with two faces, there are {self.people}; "
                f"set sets.identities to {self.people} or fewer"
            )
        chosen = rng.choice(self.people, people, replace=False)
        # Faces of one person differ as long as there are enough of them.
        rows = [
            rng.choice(self.members[p], per_person, replace=len(self.members[p]) < per_person) for p in chosen
        ]
        picks = np.array(rows, dtype=np.int64).T.reshape(-1)
        return Draw(self.labels[picks], picks)

    def sample(self, rng: np.random.Generator, limit: int) -> Draw:
        """Return up to `limit` faces of people with two faces or more."""
        picks = (
            self.faces if len(self.faces) <= limit else np.sort(rng.choice(self.faces, limit, replace=False))
        )
        return Draw(self.labels[picks], picks)


class DescriptorSource(LabelledSource):
    """Labelled descriptors in memory."""

    def __init__(
        self, descriptors: NDArray[np.float32], labels: NDArray[np.str_], where: str = "descriptors"
    ) -> None:
        known = labels != ""
        self.descriptors = descriptors[known]
        _, numbers = np.unique(labels[known], return_inverse=True)
        super().__init__(numbers.astype(np.int64), where)
        lengths = np.linalg.norm(self.descriptors, axis=1)
        if (lengths == 0).any():
            raise TrainingError(
                f"{where}: row {int(np.flatnonzero(lengths == 0)[0])} is all zeros; remove it"
            )

    @classmethod
    def open(cls, path: str | Path) -> DescriptorSource:
        """Return the source of a descriptor file, or of the training people of a collected data set."""
        if is_collected(Path(path)):
            return cls(*CollectedSet(path).labelled_faces("train"), where=str(path))
        return cls(*read_descriptors(path), where=str(path))

    @property
    def dim(self) -> int:
        """Width of a descriptor."""
        return int(self.descriptors.shape[1])

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the descriptors at unit norm; there is nothing to augment."""
        return torch.nn.functional.normalize(torch.from_numpy(self.descriptors[picks]), dim=1)


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
        return cls(VirtualPeople.fit(rows, owner).with_quality(rows, owner))

    def draw(self, rng: np.random.Generator, people: int, per_person: int) -> Draw:
        """Return `per_person` blocks of one face each of the same `people` new people."""
        identities = self.model.people(rng, people)
        labels = np.tile(np.arange(people, dtype=np.int64), per_person)
        return Draw(labels, self.model.faces(rng, identities, labels))

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the drawn descriptors; they have unit norm."""
        return torch.from_numpy(np.ascontiguousarray(picks))

    def sample(self, rng: np.random.Generator, limit: int) -> Draw:
        """Return `limit` faces, four of each person."""
        return self.draw(rng, max(limit // 4, 2), 4)
