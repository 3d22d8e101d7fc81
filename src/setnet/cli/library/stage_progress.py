"""The moving line while something with several stages works."""

from __future__ import annotations

import sys
from typing import Any


class StageProgressBar:
    """A bar for what is being done at the moment; nothing where there is no terminal."""

    def __init__(self, silent: bool = False) -> None:
        self._silent = silent or not sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> StageProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""
        if self._silent:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4)
            self._bar.start()
        if self._task is None or self._bar.tasks[-1].description != stage:
            self._task = self._bar.add_task(stage, total=total)
        self._bar.update(self._task, total=total, completed=done)
