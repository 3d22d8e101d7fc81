"""Descriptors already computed, as a training source: a `.npz` file with `descriptors` and `labels`."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setnet.errors import InvalidInputError, TrainingError
from setnet.learn.source import LabelledSource

__all__ = ["DescriptorSource", "read_descriptors"]


def read_descriptors(path: str | Path) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """Return (descriptors, labels) of a descriptor file; rows labelled "" belong to nobody known."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInputError(
            f"{path}: no such descriptor file; expected an .npz with 'descriptors' and 'labels'"
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            descriptors, labels = file["descriptors"], file["labels"]
    except KeyError as error:
        raise InvalidInputError(
            f"{path}: {error.args[0]}; expected arrays 'descriptors' and 'labels'"
        ) from error
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InvalidInputError(f"{path}: not a readable descriptor file ({error})") from error
    descriptors = np.asarray(descriptors, dtype=np.float32)
    if descriptors.ndim != 2 or labels.shape != (len(descriptors),):
        raise InvalidInputError(
            f"{path}: descriptors {descriptors.shape} and labels {labels.shape} do not fit (n, D) and (n,)"
        )
    if not np.isfinite(descriptors).all():
        bad = int(np.flatnonzero(~np.isfinite(descriptors).all(1))[0])
        raise InvalidInputError(f"{path}: row {bad} holds NaN or infinity; remove it")
    return descriptors, labels.astype(np.str_)


class DescriptorSource(LabelledSource):
    """Labelled descriptors in memory."""

    def __init__(
        self, descriptors: NDArray[np.float32], labels: NDArray[np.str_], where: str = "descriptors"
    ) -> None:
        known = labels != ""
        self.descriptors = descriptors[known]
        names, numbers = np.unique(labels[known], return_inverse=True)
        self.names = [str(name) for name in names]
        super().__init__(numbers.astype(np.int64), where)
        lengths = np.linalg.norm(self.descriptors, axis=1)
        if (lengths == 0).any():
            raise TrainingError(
                f"{where}: row {int(np.flatnonzero(lengths == 0)[0])} is all zeros; remove it"
            )

    @classmethod
    def open(cls, path: str | Path) -> DescriptorSource:
        """Return the source of a descriptor file."""
        return cls(*read_descriptors(path), where=str(path))

    @property
    def dim(self) -> int:
        """Width of a descriptor."""
        return int(self.descriptors.shape[1])

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the descriptors at unit norm; there is nothing to augment."""
        return torch.nn.functional.normalize(torch.from_numpy(self.descriptors[picks]), dim=1)
