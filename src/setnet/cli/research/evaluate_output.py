"""What `setnet evaluate` shows: progress while an experiment runs, then its tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from setnet.evaluate import Record, Run, Table

__all__ = ["print_result", "running", "show_record"]


@contextmanager
def running(
    name: str, settings: dict[str, Any], path: Path | None, plots: Path | None, total: int
) -> Iterator[tuple[Run, Callable[[str], None]]]:
    """Show progress, then the table; after Ctrl-C the table of the finished rows."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from setnet.cli.output import say as remark
    from setnet.evaluate import Run, one_blas_thread

    run = Run(name, settings, path)
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    stopped = False
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=total, completed=len(run.rows))

        def say(text: str) -> None:
            progress.update(task, description=text, completed=len(run.rows), total=max(total, len(run.rows)))
            if not progress.console.is_terminal:
                remark(text)

        try:
            with (
                one_blas_thread()
            ):  # same sums to the last bit on any number of cores, and no threads that spin
                yield run, say
        except KeyboardInterrupt:
            stopped = True
    run.save()
    record = run.record()
    show_record(record, plots)
    if stopped:
        kept = (
            f"kept in {path}; the same command goes on from there" if path else "not kept: give --json FILE"
        )
        remark(f"setnet: stopped after {len(record.rows)} rows, {kept}")
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
