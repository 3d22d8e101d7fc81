"""The interface of training sources, and the random draw of people and faces for a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from setnet.errors import TrainingError


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
