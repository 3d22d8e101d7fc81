"""The moving line while an index run works."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any

from setnet.cli.output import say
from setnet.library import IndexProgress

_LINE_SECONDS = 15.0


class IndexProgressBar:
    """A bar with rate, faces and time left; plain lines now and then where there is no terminal."""

    def __init__(self, silent: bool = False) -> None:
        self._silent = silent
        self._bar: Any = None
        self._task: Any = None
        self._last = monotonic()

    def __enter__(self) -> IndexProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the line away, until something is shown again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def show(self, now: IndexProgress) -> None:
        """Show where a run is."""
        if self._silent:
            return
        if sys.stderr.isatty():
            self._draw(now)
        elif monotonic() - self._last > _LINE_SECONDS:
            self._last = monotonic()
            say(f"{now.stage}: {now.done:,} of {now.total:,} {_details(now)}".rstrip())

    def _draw(self, now: IndexProgress) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[details]}"),
                console=Console(stderr=True),
                transient=True,
                refresh_per_second=4,
            )
            self._task = self._bar.add_task(now.stage, total=now.total, details="")
            self._bar.start()
        self._bar.update(
            self._task, description=now.stage, total=now.total, completed=now.done, details=_details(now)
        )


def _details(now: IndexProgress) -> str:
    if not now.seconds:  # it reads no photos
        return ""
    parts = [f"{now.rate:.1f} photos/s", f"{now.faces:,} faces"]
    if now.minutes:
        parts.append(f"{now.minutes:.1f} minutes of video")
    if now.failed:
        parts.append(f"{now.failed:,} failed")
    if now.seconds_left is not None:
        minutes, seconds = divmod(round(now.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        parts.append(f"{hours}:{minutes:02}:{seconds:02} left" if hours else f"{minutes}:{seconds:02} left")
    return ", ".join(parts)
