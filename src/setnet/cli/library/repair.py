"""`setnet repair`: save what can be saved of a damaged library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.shared_options import JsonOption, LibraryOption, make_app
from setnet.wording import counted

app = make_app()


@app.command()
def repair(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="LIBRARY", help="The library's folder; as --library.", show_default=False),
    ] = None,
    revive: Annotated[
        bool, typer.Option("--revive", help="Go on even if what was forgotten may come back.")
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Repair a damaged library in place, and tell what could not be saved.

    Nothing is changed until the repaired state is complete; the damaged files are kept in its folder
    `quarantine` until something is forgotten, or for a week. The exit status is 1 if something is lost.
    """
    from setnet.cli.output import print_either, say
    from setnet.library import Library, default_library

    done = Library.repair(folder or library or default_library(), revive)
    print_either(
        done.to_dict(),
        f"the library has {counted(done.photos, 'photo')} and {counted(done.people, 'person', 'people')}",
        json,
    )
    for text in done.lost:
        say(f"lost: {text}")
    if done.to_read:
        command = " ".join(("setnet index", *done.folders[:20]))
        say(f"{counted(done.to_read, 'photo is', 'photos are')} to be read again: run `{command}`")
    if done.lost:
        raise typer.Exit(1)
