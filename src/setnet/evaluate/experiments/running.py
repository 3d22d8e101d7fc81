"""What all experiments share: a run that survives Ctrl-C, on one thread of NumPy's matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setnet.evaluate.methods.plain_scan import one_blas_thread
from setnet.evaluate.report.record import Progress, Record, Run

OnProgress = Callable[[Progress], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during an experiment; ``record`` holds the rows that were finished."""

    def __init__(self, record: Record) -> None:
        super().__init__(f"{record.experiment}: stopped after {len(record.rows)} rows")
        self.record = record


@contextmanager
def running(
    experiment: str,
    settings: Mapping[str, Any],
    path: Path | None = None,
    progress: OnProgress | None = None,
    total: int = 0,
) -> Iterator[Run]:
    """Yield the run to fill, and save it at the end; Ctrl-C becomes `Interrupted`."""
    run = Run(experiment, settings, path, progress, total)
    try:
        with one_blas_thread():  # same sums to the last bit on any number of cores, and no threads that spin
            yield run
    except KeyboardInterrupt as error:
        run.save()
        raise Interrupted(run.record()) from error
    run.save()
