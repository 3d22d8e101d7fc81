"""Options that several commands share, and the library they mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
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
