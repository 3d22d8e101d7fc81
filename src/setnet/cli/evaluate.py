"""`setnet evaluate`: the experiments of the paper, one command each, with progress and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.options import (
    CommandGroup,
    PlainCommand,
    argument,
    make_app,
    option,
    settings_command,
)
from setnet.cli.output import ProgressBar, console, say
from setnet.evaluate import EXPERIMENTS, experiment_module

if TYPE_CHECKING:
    from setnet.evaluate import Progress, Record, Table


class _Experiments(CommandGroup):
    """A group that imports an experiment when it is called, or when somebody asks for all commands."""

    _others: Mapping[str, Any]

    @property
    def commands(self) -> Any:
        """All commands by name."""
        return {name: self.get_command(None, name) for name in self.list_commands(None)}

    @commands.setter
    def commands(self, others: Mapping[str, Any]) -> None:
        self._others = others

    def list_commands(self, ctx: Any) -> list[str]:
        return [*EXPERIMENTS, *self._others]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in EXPERIMENTS:
            return self._others.get(cmd_name)
        alone = make_app()
        made_by = f"setnet evaluate {cmd_name}"
        alone.command(cmd_name, cls=PlainCommand)(experiment_command(experiment_module(cmd_name), made_by))
        return typer.main.get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        others = ((name, each.get_short_help_str(limit=1000)) for name, each in self._others.items())
        self.write_panels({"Commands": [*EXPERIMENTS.items(), *others]}, formatter)


app = make_app(cls=_Experiments)
JsonFile = Annotated[
    Path | None,
    option("Keep rows here as they finish; the same command goes on from them.", "--json", metavar="FILE"),
]
PageFile = Annotated[Path | None, option("Also put the tables into this page.", "--page", metavar="FILE.md")]


@app.callback()
def evaluate() -> None:
    """Run the experiments of the paper: tables and JSON of your own descriptors or of simulated ones.

    Without --descriptors the people are virtual, drawn from statistics of real descriptors. Ctrl-C keeps the
    finished rows, `--page` puts tables into a page; `compare` shows them beside the paper's tables.
    """


def experiment_command(module: ModuleType, made_by: str) -> Callable[..., None]:
    """Return the command of an experiment: options from its settings, then progress and tables."""

    def act(settings: Any, json: JsonFile = None, page: PageFile = None) -> None:
        from setnet.evaluate import Interrupted
        from setnet.evaluate.report import write_section
        from setnet.evaluate.tables import conditions

        stopped = False
        with ProgressBar(line_seconds=0) as bar:  # each row takes long: each gets a line

            def progress(now: Progress) -> None:
                bar.show(now.doing, now.done, now.total)

            try:
                record: Record = module.run(settings, json, progress)
            except Interrupted as interrupted:
                record, stopped = interrupted.record, True
        tables = module.tables(record) if record.rows else []
        for table in tables:
            _print_result(table)
        if record.rows:
            typer.echo(conditions(record))
        if page is not None:
            name = record.experiment if json is None else json.stem
            typer.echo(str(write_section(page, f"evaluate {name}", module.TITLE, record, tables, made_by)))
        if stopped:
            kept = f"kept in {json}; the same command goes on from there"
            lost = "not kept: give --json FILE"
            say(f"setnet: stopped after {len(record.rows)} rows, {kept if json else lost}")
            raise typer.Exit(130)

    return settings_command(module.Settings, act)


def run_study(module: ModuleType, name: str) -> None:
    """Run a module with settings, a run and tables as a program of its own, which was called by this name."""
    from setnet.cli.app import run

    study = make_app()
    study.command(cls=PlainCommand)(experiment_command(module, name))
    run(study, name)


def _print_result(table: Table) -> None:
    """Print a table with its bold cells."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

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


@app.command(cls=PlainCommand)
def compare(
    results: Annotated[list[Path], argument("FILE.json...", "Results of experiments.")],
) -> None:
    """Show results beside the paper's own tables, with what differs in the set-up."""
    from setnet.evaluate import compare_with_paper, read_record

    for path in results:
        for table in compare_with_paper(read_record(path)):
            _print_result(table)
