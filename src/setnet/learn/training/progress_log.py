"""Progress of a training run: loss, samples per second and time left, as log lines and for TensorBoard."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from types import TracebackType
from typing import Any

SECONDS_BETWEEN_LINES = 5.0
logger = logging.getLogger(__name__)


class ProgressLog:
    """Logs a line every few seconds, and is silent when `quiet`."""

    def __init__(self, title: str, first: int, steps: int, folder: Path | None, quiet: bool = False) -> None:
        self.title, self.steps, self.quiet = title, steps, quiet
        self._first, self._started, self._logged = first, time.monotonic(), 0.0
        self._samples = 0
        self._writer: Any = None
        if folder is not None and not quiet:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:  # the logs are a convenience: training goes on without them
                self._writer = None
            else:
                self._writer = SummaryWriter(str(folder), purge_step=first)

    def __enter__(self) -> ProgressLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()
        if kind is KeyboardInterrupt and not self.quiet:
            logger.info("%s: stopped; the same command goes on from a checkpoint", self.title)

    def step(self, samples: int) -> None:
        """Note that a step of so many samples is done."""
        self._samples += samples

    def log(self, step: int, values: dict[str, float]) -> None:
        """Write values of a step to the logs."""
        if self.quiet:
            return
        seconds = time.monotonic() - self._started
        rate = self._samples / max(seconds, 1e-9)
        if self._writer is not None:
            for name, value in (values | {"samples per second": rate}).items():
                self._writer.add_scalar(f"{self.title}/{name}", value, step)
        if seconds - self._logged > SECONDS_BETWEEN_LINES or step == self.steps:
            self._logged = seconds
            left = seconds / max(step - self._first, 1) * (self.steps - step)
            progress = f"{self.title} {step}/{self.steps}  loss {values['loss']:.4f}"
            logger.info("%s  %.0f samples/s  %.0f s left", progress, rate, left)
