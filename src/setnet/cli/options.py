"""Options that several commands share, the library they mean, and the question that one stands for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import say

if TYPE_CHECKING:
    from setnet.errors import TakenError
    from setnet.library import Library

LibraryOption = Annotated[
    Path | None,
    typer.Option(
        "--library",
        metavar="DIR",
        help="The library's folder [default: SETNET_LIBRARY, else the user's data folder].",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=0, max=256, metavar="N", help="Worker processes [default: one per core].", show_default=False
    ),
]
HitsOption = Annotated[int, typer.Option("-k", min=1, metavar="N", help="How many photos to show.")]
AllOption = Annotated[bool, typer.Option("--all", help="Only photos with all of them.")]
AtLeastOption = Annotated[
    int, typer.Option(min=0, metavar="N", help="Only photos with at least this many of them.")
]
OnlyOption = Annotated[bool, typer.Option("--only", help="Only photos with nobody else in them.")]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(metavar="PERSON", help="Only photos without this person; may be repeated."),
]
AfterOption = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Taken on this date or later: 2019, 2019-07, 2019-07-14."),
]
BeforeOption = Annotated[str | None, typer.Option(metavar="DATE", help="Taken before this date.")]


def make_app() -> typer.Typer:
    """Return an app with plain help: it shows in the time that styled help takes to be imported."""
    return typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


def open_library(path: Path | None) -> Library:
    """Open the library meant by `--library`, the environment or the user's data folder."""
    from setnet.library import Library, default_library

    return Library.open(path or default_library())


NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
ToExistingOption = Annotated[
    bool,
    typer.Option(
        "--to-existing", help="Add to whoever is called so, spelt differently or looking different."
    ),
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
