"""Options that several commands share, the library they mean, and the question that one stands for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.output import say

if TYPE_CHECKING:
    from setnet.errors import TakenError
    from setnet.library import Library


def option(about: str, *names: str, **more: Any) -> Any:
    """Return an option of a command: what it does, its names if they are not the parameter's, and limits."""
    return typer.Option(*names, help=about, **more)


def argument(metavar: str, about: str | None = None) -> Any:
    """Return an argument of a command, by the name that its help gives it."""
    return typer.Argument(metavar=metavar, help=about, show_default=False)


LibraryOption = Annotated[
    Path | None,
    option(
        "The library's folder [default: SETNET_LIBRARY, else the user's data folder].",
        "--library",
        metavar="DIR",
    ),
]
JsonOption = Annotated[bool, option("Print JSON for programs.", "--json")]
WorkersOption = Annotated[
    int | None, option("Worker processes [default: one per core].", min=0, max=256, metavar="N")
]
HitsOption = Annotated[int, option("How many photos to show.", "-k", min=1, metavar="N")]
AllOption = Annotated[bool, option("Only photos with all of them.", "--all")]
AtLeastOption = Annotated[int, option("Only photos with at least this many of them.", min=0, metavar="N")]
OnlyOption = Annotated[bool, option("Only photos with nobody else in them.", "--only")]
WithoutOption = Annotated[
    list[str] | None, option("Only photos without this person; may be repeated.", metavar="PERSON")
]
AfterOption = Annotated[
    str | None, option("Taken on this date or later: 2019, 2019-07, 2019-07-14.", metavar="DATE")
]
BeforeOption = Annotated[str | None, option("Taken before this date.", metavar="DATE")]


def make_app() -> typer.Typer:
    """Return an app with plain help: it shows in the time that styled help takes to be imported."""
    return typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


def open_library(path: Path | None) -> Library:
    """Open the library meant by `--library`, the environment or the user's data folder."""
    from setnet.library import Library, default_library

    return Library.open(path or default_library())


NameArgument = Annotated[str, argument("NAME")]
ToExistingOption = Annotated[
    bool, option("Add to whoever is called so, spelt differently or looking different.", "--to-existing")
]


def confirm_existing(error: TakenError) -> bool:
    """Return whether the user, asked at a terminal, means the person whose name is taken; ends on a no."""
    if not sys.stdin.isatty():
        return False
    question = str(error).rpartition(": ")[0]
    if not typer.confirm(f"{question}. Add to {error.person['name']}?", err=True):
        say("nothing was saved")
        raise typer.Exit(1)
    return True
