"""`setnet restore`: bring a backup back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.shared_options import JsonOption, make_app
from setnet.wording import counted

app = make_app()


@app.command()
def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", show_default=False)],
    to: Annotated[
        Path | None,
        typer.Argument(metavar="TO", help="A new or empty folder; none: your library.", show_default=False),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace the library that is there, once the new one is complete."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Verify a backup and copy it to where it is used as the library."""
    from setnet.cli.output import print_either
    from setnet.library import Library, default_library, display_path

    place = to or default_library()
    done = Library.restore(backup, place, replace)
    contents = f"{counted(done.photos, 'photo')} and {counted(done.people, 'person', 'people')}"
    text = f"{display_path(place)}: {contents}"
    print_either({"library": str(place)} | done.to_dict(), text, json)
