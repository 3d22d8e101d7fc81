"""What `setnet evaluate` shows: progress while an experiment runs, then its tables and plots."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

if TYPE_CHECKING:
    from setnet.evaluate import Progress, Record, Table

P = ParamSpec("P")


def experiment(name: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Return the decorator for a command that runs ``setnet.evaluate.NAME`` with its own options."""

    def decorated(command: Callable[P, None]) -> Callable[P, None]:
        @wraps(command)
        def run(*_: P.args, **options: P.kwargs) -> None:
            import setnet.evaluate

            show_experiment(name, getattr(setnet.evaluate, name), options)

        return run

    return decorated


def show_experiment(name: str, call: Callable[..., Record], options: dict[str, Any]) -> None:
    """Run an experiment and show its progress, then its tables and plots; after Ctrl-C the finished rows."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from setnet.cli.output import say
    from setnet.evaluate import Interrupted

    plots, path = options.pop("plots", None), options["json"]
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    stopped = False
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(name, total=None)

        def progress(now: Progress) -> None:
            bars.update(task, description=now.doing, completed=now.done, total=now.total)
            if not bars.console.is_terminal:
                say(now.doing)

        try:
            record = call(**options, progress=progress)
        except Interrupted as interrupted:
            record, stopped = interrupted.record, True
    show_record(record, plots)
    if stopped:
        kept = (
            f"kept in {path}; the same command goes on from there" if path else "not kept: give --json FILE"
        )
        say(f"setnet: stopped after {len(record.rows)} rows, {kept}")
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
