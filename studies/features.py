"""What the frozen part of a network makes of faces, computed once and kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setnet.errors import TrainingError
from setnet.train.loop import SECONDS_BETWEEN_LINES
from setnet.train.sources import LabelledSource, TrainingSource, stream

logger = logging.getLogger(__name__)
Features = NDArray[np.float16]
AT_ONCE = 8  # faces; more are slower on a CPU, whose caches they do not fit in


class FeatureViews(LabelledSource):
    """What the frozen part of a network makes of faces, as they are at run time and in augmented views.

    `make` returns the features of a view; it is called when the view is first asked for.
    """

    def __init__(
        self, labels: NDArray[np.int64], where: str, make: Callable[[int], Features], views: int = 1
    ) -> None:
        super().__init__(labels, where)
        self._view, self._views = cache(make), views

    def prepare(self) -> None:
        """Make the features of all views, or open them."""
        for view in range(self._views):
            self._view(view)

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the features: of a random view of each face if it has its stream, else as at run time."""
        views = [0] * len(picks) if streams is None else [int(s.integers(self._views)) for s in streams]
        rows = [self._view(view)[row] for view, row in zip(views, picks.tolist(), strict=True)]
        return torch.from_numpy(np.stack(rows).astype(np.float32))


def cache_features(
    part: nn.Module,
    source: Callable[[], TrainingSource],
    rows: NDArray[np.int64],
    path: Path,
    view: int = 0,
) -> Features:
    """Return what `part` makes of faces of what `source` returns; kept in `path`, an `.npy`.

    Faces are as at run time in view 0, and augmented in others, differently in each.
    """
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".tmp")
        _write(part, source(), rows, fresh, view)
        fresh.replace(path)
    kept: Features = np.load(path, mmap_mode="r", allow_pickle=False)
    if len(kept) != len(rows):
        raise TrainingError(f"{path}: features of {len(kept)} faces, {len(rows)} wanted; remove this file")
    return kept


def _write(part: nn.Module, source: TrainingSource, rows: NDArray[np.int64], path: Path, view: int) -> None:
    out: np.memmap[Any, np.dtype[np.float16]] | None = None
    logged = time.monotonic()
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        streams = [stream(0, view, int(row)) for row in some] if view else None
        with torch.no_grad():
            made = part(source.load(some, streams)).numpy()
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
