"""`setnet people export` and `import`: people as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.output import print_either, say
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

app = make_app()


@app.command("export")
def export_people(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.", show_default=False)],
    without_descriptors: Annotated[
        bool,
        typer.Option(
            "--without-descriptors", help="Leave them out: import then finds the faces again in the photos."
        ),
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Write all saved people to a JSON file: names, example faces with pictures, confirmed and refused faces.

    With descriptors it fits libraries of the same descriptor model; without, any that has the same photos.
    """
    with open_library(library) as opened:
        done = opened.export_people(file, descriptors=not without_descriptors)
    people, examples = counted(done.people, "person", "people"), counted(done.examples, "example face")
    text = f"{people}, {examples} and {counted(done.verdicts, 'verdict')} in {file}"
    print_either(done.to_dict() | {"file": str(file)}, text, json)


@app.command("import")
def import_people(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file of `people export`.", show_default=False)
    ],
    without_descriptors: Annotated[
        bool,
        typer.Option("--without-descriptors", help="Find the faces again in the photos of this library."),
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Add the people of a file to those saved here; who is here already gets what is missing.

    Importing a file twice changes nothing. The exit status is 1 if faces were not found.
    """
    with open_library(library) as opened:
        done = opened.import_people(file, descriptors=not without_descriptors)
    for note in done.notes:
        say(f"note: {note}")
    text = (
        f"{counted(done.people, 'person', 'people')} in the file, {done.new} of them new; "
        f"{counted(done.examples, 'example face')} and {counted(done.verdicts, 'verdict')} added"
    )
    print_either(done.to_dict(), text, json)
    if done.not_found:
        raise typer.Exit(1)
