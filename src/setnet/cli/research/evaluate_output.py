"""What `setnet evaluate` shows: progress while an experiment runs, then its tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from setnet.evaluate import Progress, Record, Table

__all__ = ["print_result", "show_experiment", "show_record"]


@dataclass
class Shown:
    """An experiment on the screen: takes its progress, and at the end its record."""

    progress: Callable[[Progress], None]
    record: Record | None = None


@contextmanager
def show_experiment(name: str, path: Path | None, plots: Path | None) -> Iterator[Shown]:
    """Show progress, then the table; after Ctrl-C the table of the finished rows."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from setnet.cli.output import say
    from setnet.evaluate import Interrupted

    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    stopped = False
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(name, total=None)

        def progress(now: Progress) -> None:
            bars.update(task, description=now.doing, completed=now.done, total=now.total)
            if not bars.console.is_terminal:
                say(now.doing)

        shown = Shown(progress)
        try:
            yield shown
        except Interrupted as interrupted:
            shown.record, stopped = interrupted.record, True
    assert shown.record is not None
    show_record(shown.record, plots)
    if stopped:
        kept = (
            f"kept in {path}; the same command goes on from there" if path else "not kept: give --json FILE"
        )
        say(f"setnet: stopped after {len(shown.record.rows)} rows, {kept}")
        raise typer.Exit(130)


def show_record(record: Record, plots: Path | None) -> None:
    """Print the tables of a record and draw its plots."""
    from setnet.evaluate import conditions, tables_of

    for table in tables_of(record):
        print_result(table)
    if record.rows:
        typer.echo(conditions(record))
    if plots is not None:
        from setnet.evaluate import plots_of

        for file in plots_of(record, plots):
            typer.echo(str(file))


def print_result(table: Table) -> None:
    """Print a table with its bold cells."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    from setnet.cli.output import console

    shown = RichTable(
        title=table.title, caption=table.note or None, box=box.SIMPLE_HEAD, title_justify="left"
    )
    for i, name in enumerate(table.columns):
        shown.add_column(name, justify="left" if i == 0 else "right")
    for r, row in enumerate(table.cells):
        shown.add_row(
            *(Text(cell, style="bold" if (r, c) in table.bold else "") for c, cell in enumerate(row))
        )
    console().print(shown)
