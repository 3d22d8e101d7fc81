"""What the commands of `setnet collect` share: options, the moving line, the report of a step."""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.output import say

if TYPE_CHECKING:
    from setnet.collect import StepReport

_LINE_SECONDS = 15.0

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.", show_default=False)]
AgainOption = Annotated[bool, typer.Option("--again", help="Do it anew, as after photos were added.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=256,
        metavar="N",
        help="Processes for photos [default: one per core].",
        show_default=False,
    ),
]


class RunProgress:
    """A line that counts; plain lines now and then where there is no terminal."""

    def __init__(self) -> None:
        self._status: Any = None
        self._last = monotonic()

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, step: str, rows: int) -> None:
        """Show how many rows a step has."""
        if sys.stderr.isatty():
            if self._status is None:
                from rich.console import Console

                self._status = Console(stderr=True).status("")
                self._status.start()
            if rows % 20 == 0:
                self._status.update(f"{step}: {rows:,}")
        elif monotonic() - self._last > _LINE_SECONDS:
            self._last = monotonic()
            say(f"{step}: {rows:,}")


def report_step(report: StepReport) -> None:
    """Print what a step did."""
    summary = report.summary
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in summary.reasons.most_common())
    state = " (was done)" if report.was_done else ""
    typer.echo(
        f"{report.name}{state}: {summary.kept:,} of {summary.rows:,} kept"
        + (f"; {dropped}" if dropped else "")
    )
