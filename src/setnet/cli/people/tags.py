"""`setnet people import-tags`: names from the face tags of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_json, print_text, say, say_some
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.connect import TagImport

app = make_app()

_MOST_LINES = 10


@app.command("import-tags")
def import_tags(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Folders or photos to look at [default: all photos of the library].",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done; nothing is changed.")
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Name faces by the face tags that other programs wrote: Lightroom, digiKam, Picasa, Windows, ACDSee.

    Tags are read from photos, from .xmp sidecars and from .picasa.ini. Each is matched with a face that the
    library has at that place. A face that is somebody else's, or was refused, stays as it is. Running it
    again changes nothing, and `setnet people undo` takes it back. The exit status is 1 if files could not be
    read.
    """
    from setnet.cli.library.stage_progress import StageProgressBar
    from setnet.connect import import_tags
    from setnet.library import display_path

    with open_library(library) as opened, StageProgressBar(silent=json) as bar:
        try:
            done = import_tags(opened, folders or (), dry_run=dry_run, progress=bar.show)
        except KeyboardInterrupt:
            say("stopped; nothing was changed")
            raise typer.Exit(130) from None
    if json:
        print_json(done.to_dict(display_path))
    else:
        _print(done)
    if not done.ok:
        raise typer.Exit(1)


def _print(done: TagImport) -> None:
    from setnet.library import display_path

    what = "would get a name" if done.dry_run else "got a name"
    text = f"{counted(done.photos, 'photo')}, {done.tagged:,} with face tags: "
    text += f"{counted(done.named, 'face')} {what}"
    if done.people:
        text += f", of {counted(done.people, 'person', 'people')} ({done.new:,} new)"
    if done.known:
        text += f"; {done.known:,} had it already"
    print_text(text)
    for name, faces in list(done.faces.items())[:_MOST_LINES]:
        print_text(f"  {name}: {faces:,}")
    if done.refused:
        say(f"{done.refused:,} tagged faces were refused for that person before, and stay so")
    say_some(
        "no face was found at the region of", [f"{name} in {display_path(p)}" for p, name in done.not_found]
    )
    say_some(
        "not changed:",
        [f"face {c.face} of {display_path(c.photo)} is {c.owner}, tagged {c.name}" for c in done.conflicts],
    )
    say_some("could not be read:", [f"{display_path(path)}: {why}" for path, why in done.unreadable])
