"""`setnet people edit`, `examples`, `split`, `move`, `confirm`, `refuse`: put people right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.people.person_text import Name, Numbers, print_person
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library

if TYPE_CHECKING:
    from setnet.library import Example

app = make_app()

Faces = Annotated[
    list[str],
    typer.Argument(
        metavar="PHOTO#N",
        help="A face of an indexed photo: group.jpg#3 is the third from the left.",
        show_default=False,
    ),
]


@app.command()
def edit(
    name: Name,
    alias: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name that finds them; may be repeated.")
    ] = None,
    no_alias: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Not called so any more; may be repeated.")
    ] = None,
    note: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What to remember of them; '' for nothing.")
    ] = None,
    cover: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The example whose picture stands for them; 0 for the oldest."),
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Change a person's other names, note or picture."""
    from setnet.errors import InvalidInputError

    if alias is None and no_alias is None and note is None and cover is None:
        raise InvalidInputError("say what to change: --alias, --no-alias, --note or --cover")
    with open_library(library) as opened:
        aliases = None
        if alias is not None or no_alias is not None:
            aliases = opened.people.aliases(name, add=alias or (), drop=no_alias or ())
        person = opened.people.edit(name, aliases=aliases, note=note, cover=cover)
    print_person(person, json)


@app.command()
def examples(
    name: Name,
    remove: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Remove this example; may be repeated.")
    ] = None,
    for_good: Annotated[
        bool, typer.Option("--for-good", help="With --remove: without undo, and without a trace.")
    ] = False,
    pictures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the pictures there, as NUMBER.jpg.")
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """List a person's example faces with their numbers, or remove some of them.

    An origin is portrait (a photo you gave), confirmed (a match), group (a group you named) or import.
    """
    from setnet.errors import InvalidInputError

    if for_good and not remove:
        raise InvalidInputError("--for-good goes with --remove")
    with open_library(library) as opened:
        if remove:
            print_person(opened.people.remove_examples(name, remove, for_good=for_good), json)
            return
        person, known = opened.people.get(name), opened.people.examples(name)
        if pictures is not None:
            _write_pictures(known, pictures)
    if json:
        print_json({"person": person.to_dict(), "examples": [example.to_dict() for example in known]})
    else:
        print_examples(known, person.cover)


def print_examples(known: Sequence[Example], cover: int | None) -> None:
    """Print example faces, one in a line."""
    rows = [
        (
            example.number,
            example.origin,
            "cover" if example.number == cover else "yes" if example.picture else "-",
            example.source or "-",
        )
        for example in known
    ]
    print_table(["", "origin", "picture", "from"], rows, right=[""])


def _write_pictures(known: Sequence[Example], folder: Path) -> None:
    from setnet.library import write_pictures

    written = write_pictures(known, folder)
    say(f"{written} picture(s) in {folder}")


@app.command()
def split(
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", show_default=False)],
    numbers: Numbers,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Split examples off NAME: they become the new person NEW."""
    with open_library(library) as opened:
        person = opened.people.split(name, numbers, new)
    print_person(person, json)


@app.command()
def move(
    name: Name,
    to: Annotated[str, typer.Argument(metavar="TO", show_default=False)],
    numbers: Numbers,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Move examples from NAME to another saved person."""
    with open_library(library) as opened:
        person = opened.people.move(name, numbers, to)
    print_person(person, json)


@app.command()
def confirm(name: Name, faces: Faces, library: LibraryOption = None, json: JsonOption = False) -> None:
    """Say that faces are this person: they become examples, and nobody else's.

    What was said is kept when photos are moved, copied, indexed again or described by another model.
    """
    with open_library(library) as opened:
        for photo, face in [opened.face_at(text) for text in faces]:
            person = opened.confirm(name, photo, face)
    print_person(person, json)


@app.command()
def refuse(name: Name, faces: Faces, library: LibraryOption = None, json: JsonOption = False) -> None:
    """Say that faces are not this person: they never match them again.

    What was said is kept when photos are moved, copied, indexed again or described by another model.
    """
    with open_library(library) as opened:
        for photo, face in [opened.face_at(text) for text in faces]:
            person = opened.people.refuse(name, photo, face)
    print_person(person, json)
