"""Descriptors already computed, as a training source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setnet.collect import CollectedSet, is_collected
from setnet.errors import TrainingError
from setnet.learn.data.source import LabelledSource
from setnet.library import read_descriptors


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
            return cls(*CollectedSet(path).labelled("train"), where=str(path))
        return cls(*read_descriptors(path), where=str(path))

    @property
    def dim(self) -> int:
        """Width of a descriptor."""
        return int(self.descriptors.shape[1])

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the descriptors at unit norm; there is nothing to augment."""
        return torch.nn.functional.normalize(torch.from_numpy(self.descriptors[picks]), dim=1)
