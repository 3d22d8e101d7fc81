"""`setnet people`: save people by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_either, print_json, print_table, say
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library

if TYPE_CHECKING:
    from setnet.library import Person

app = make_app()

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]


@app.callback()
def people() -> None:
    """Save people by name; list, rename, merge, remove them."""


@app.command()
def add(
    name: Name,
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGE",
            help="Photos of them (the largest face; group.jpg#3 is the third from the left), or folders.",
            show_default=False,
        ),
    ],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Save a person, or add example faces to a saved one."""
    with open_library(library) as opened:
        person, notes = opened.add_person(name, images)
    for note in notes:
        say(f"note: {note}")
    _print_person(person, json, notes=notes)


@app.command("list")
def list_people(library: LibraryOption = None, json: JsonOption = False) -> None:
    """List the saved people."""
    with open_library(library) as opened:
        known = list(opened.people)
    if json:
        print_json({"people": [person.to_dict() for person in known]})
    elif known:
        print_table(["name", "examples"], [(p.name, p.examples) for p in known], right=["examples"])
    else:
        say("nobody is saved yet: `setnet people add NAME PHOTO...`")


@app.command()
def show(name: Name, library: LibraryOption = None, json: JsonOption = False) -> None:
    """Show a person's example faces and in how many photos they are."""
    with open_library(library) as opened:
        known = opened.person_details(name)
    if json:
        print_json(known.to_dict())
        return
    person = known.person
    typer.echo(f"{person.name}: in {known.photos:,} photos, known by {person.examples} example face(s)")
    print_table(["", "from"], [(n, e.source or "-") for n, e in enumerate(known.examples, 1)], right=[""])


@app.command()
def rename(
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", show_default=False)],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Give a person another name."""
    with open_library(library) as opened:
        person = opened.people.rename(name, new)
    _print_person(person, json, f"{name} is now {person.name}")


@app.command()
def merge(
    name: Name,
    others: Annotated[list[str], typer.Argument(metavar="OTHER", show_default=False)],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Merge OTHER people into NAME: their example faces become NAME's."""
    with open_library(library) as opened:
        person = opened.people.merge(name, others)
    _print_person(person, json)


@app.command()
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME", show_default=False)],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Delete saved people and their example faces for good; photos stay in the library."""
    with open_library(library) as opened:
        opened.people.remove(*names)
    print_either({"removed": names}, f"removed {', '.join(names)}", json)


def _print_person(person: Person, json: bool, text: str = "", **more: object) -> None:
    print_either(person.to_dict() | more, text or f"{person.name}: {person.examples} example face(s)", json)
