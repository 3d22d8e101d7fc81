"""`setnet backup`: copy the library while it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

app = make_app()


@app.command()
def backup(
    dest: Annotated[
        Path,
        typer.Argument(
            metavar="DEST", help="A new or empty folder, or an earlier backup.", show_default=False
        ),
    ],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Copy the library, as it is at one moment, to another folder; it may be searched and indexed meanwhile.

    A second backup to the same folder copies what is new. A backup is a library: `--library DEST` opens it,
    `setnet restore DEST` brings it back. What is forgotten later stays in the backup until the next one.
    """
    from setnet.cli.output import print_either
    from setnet.library import display_path

    with open_library(library) as opened:
        done = opened.backup(dest)
    people = counted(done.people, "person", "people")
    text = f"{counted(done.photos, 'photo')} and {people}, {done.copied_bytes / 1e6:,.1f} MB copied"
    print_either({"backup": str(dest)} | done.to_dict(), f"{display_path(dest)}: {text}", json)
