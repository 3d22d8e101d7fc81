"""What the frozen part of a backbone makes of photos and of copies of them, computed once and kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setnet.errors import TrainingError
from setnet.learn.data.face_source import FaceSource
from setnet.learn.data.source import LabelledSource

AT_ONCE = 8  # faces; more are slower on a CPU, whose caches they do not fit in
SECONDS_BETWEEN_LINES = 10.0
logger = logging.getLogger(__name__)
Features = NDArray[np.float16]


class FeatureSource(LabelledSource):
    """Features of faces, a row for each copy of each photo; every copy counts as a face of its person.

    Attributes
    ----------
    targets
        The unit descriptor that each row should have: that of its photo by the network as it was.
    """

    def __init__(
        self, features: Features, labels: NDArray[np.int64], targets: Tensor, where: str = "features"
    ) -> None:
        if not len(features) == len(labels) == len(targets):
            raise TrainingError(
                f"{where}: {len(features)} features, {len(labels)} labels and {len(targets)} targets "
                "must be as many"
            )
        super().__init__(labels, where)
        self.features, self.targets = features, targets

    def only(self, rows: NDArray[np.int64]) -> FeatureSource:
        """Return a source of some rows."""
        return FeatureSource(self.features[rows], self.labels[rows], self.targets[rows], self.where)

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the features; there is nothing to augment."""
        return torch.from_numpy(np.asarray(self.features[picks], np.float32))


def kept_features(part: nn.Module, source: FaceSource, rows: NDArray[np.int64], path: Path) -> Features:
    """Return what `part` makes of faces of `source`; kept in `path` (an `.npy`) and read from there."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".tmp")
        _write(part, source, rows, fresh)
        fresh.replace(path)
    kept: Features = np.load(path, mmap_mode="r", allow_pickle=False)
    if len(kept) != len(rows):
        raise TrainingError(f"{path}: features of {len(kept)} faces, {len(rows)} wanted; remove this file")
    return kept


def _write(part: nn.Module, source: FaceSource, rows: NDArray[np.int64], path: Path) -> None:
    out: np.memmap[Any, np.dtype[np.float16]] | None = None
    logged = time.monotonic()
    for start in range(0, len(rows), AT_ONCE):
        with torch.no_grad():
            made = part(source.load(rows[start : start + AT_ONCE], None)).numpy()
        if out is None:
            shape = (len(rows), *made.shape[1:])
            out = np.lib.format.open_memmap(path, "w+", dtype=np.float16, shape=shape)
        out[start : start + len(made)] = made
        if time.monotonic() - logged > SECONDS_BETWEEN_LINES:
            logged = time.monotonic()
            logger.info("%s: features of %s of %s faces", source.where, start + len(made), len(rows))
    if out is None:
        raise TrainingError(f"{source.where}: no faces to describe")
    out.flush()
