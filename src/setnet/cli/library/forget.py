"""`setnet forget`: delete for good."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.output import print_either, say
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

app = make_app()


@app.command()
def forget(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Photos or folders to forget.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="Delete the whole library: faces, people, thumbnails.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Delete the library's data about photos, or everything, for good. The photos themselves stay.

    Descriptors are removed from every file of the library, not only marked as deleted, and from the examples
    of saved people. A photo that lies in an indexed folder comes back with the next `setnet index` of it.
    """
    from setnet.errors import InvalidInputError
    from setnet.library import display_path

    if everything == bool(paths):
        raise InvalidInputError("say what to forget: photos or folders, or --everything")
    with open_library(library) as opened:
        counts = opened.catalog.counts()
        if everything:
            place = display_path(opened.path)
            what = f"all {counts.photos:,} photos' faces and {counts.people:,} people in {place}"
        else:
            what = f"the faces of photos in {', '.join(display_path(p) for p in paths or ())}"
        if not yes and not typer.confirm(f"Delete {what} for good?", err=True):
            say("nothing was deleted")
            raise typer.Exit(1)
        photos = opened.forget_everything() if everything else opened.forget(paths or [])
        without = [] if everything else [person.name for person in opened.people if not person.examples]
    more = {} if everything else {"people_without_examples": without}
    print_either(
        {"photos": photos, "everything": everything, **more}, f"forgot {counted(photos, 'photo')}", json
    )
    if without:
        say(f"no example face is left of {', '.join(without)}: `setnet people add` gives new ones")
