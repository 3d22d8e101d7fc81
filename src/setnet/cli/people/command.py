"""`setnet people`: save people by name; list, show, rename, merge, remove them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_facts, print_json, print_table, say
from setnet.cli.people import exchange, groups, history, mending, suggestions, tags
from setnet.cli.people.person_text import Name, ToExisting, agrees, print_person
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.library import Person

app = make_app()


@app.callback()
def people() -> None:
    """Find who is in the photos; save people by name; mend, merge, remove them; undo what was done.

    `discover` groups unknown faces, `name` gives a group a name. A GROUP is what it lists, such as g17.

    A NAME is what somebody is called, an alias of theirs, or their id. Upper and lower case are alike.
    """


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
    to_existing: ToExisting = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Save a person, or add example faces to a saved one.

    Faces are added to a saved person when the name is spelt as it is saved and they look alike. Otherwise a
    terminal asks, and a program needs --to-existing. The same face twice counts once.
    """
    from setnet.errors import TakenError

    with open_library(library) as opened:
        examples, notes = opened.examples_in(images)
        try:
            person, more = opened.save_person(name, examples, "add" if to_existing else "ask")
        except TakenError as error:
            if not agrees(error):
                raise
            person, more = opened.save_person(name, examples, "add")
    for note in (*notes, *more):
        say(f"note: {note}")
    print_person(person, json, notes=[*notes, *more])


@app.command("list")
def list_people(library: LibraryOption = None, json: JsonOption = False) -> None:
    """List the saved people."""
    with open_library(library) as opened:
        known = list(opened.people)
    if json:
        print_json({"people": [person.to_dict() for person in known]})
    elif known:
        rows = [(p.name, p.examples, p.id, ", ".join(p.aliases)) for p in known]
        print_table(["name", "examples", "id", "also called"], rows, right=["examples"])
    else:
        say("nobody is saved yet: `setnet people add NAME PHOTO...`")


@app.command()
def show(name: Name, library: LibraryOption = None, json: JsonOption = False) -> None:
    """Show who a person is, in how many photos they are, and each example face with its number."""
    with open_library(library) as opened:
        known = opened.person_details(name)
    if json:
        print_json(known.to_dict())
        return
    person = known.person
    photos, examples = counted(known.photos, "photo"), counted(person.examples, "example face")
    typer.echo(f"{person.name}: in {photos}, known by {examples}")
    print_facts(_facts(person))
    mending.print_examples(known.examples, person.cover)


def _facts(person: Person) -> list[tuple[str, str]]:
    facts = [("id", person.id)]
    if person.aliases:
        facts.append(("also called", ", ".join(person.aliases)))
    if person.note:
        facts.append(("note", person.note))
    return facts


@app.command()
def rename(
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", show_default=False)],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Give a person another name; the id stays."""
    with open_library(library) as opened:
        person = opened.people.rename(name, new)
    print_person(person, json, f"{name} is now {person.name}")


@app.command()
def merge(
    name: Name,
    others: Annotated[list[str], typer.Argument(metavar="OTHER", show_default=False)],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Merge OTHER people into NAME: what is theirs becomes NAME's, and their names are gone.

    `setnet people undo` takes them apart again.
    """
    with open_library(library) as opened:
        person = opened.people.merge(name, others)
    print_person(person, json)


@app.command()
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME", show_default=False)],
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation, as a terminal does.")
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Delete saved people for good, with their example faces; photos stay in the library.

    This cannot be undone: the changes that concerned them go from the journal too.
    """
    with open_library(library) as opened:
        known = [opened.people.get(name) for name in names]
        if not yes and sys.stdin.isatty():
            who = ", ".join(f"{person.name} ({counted(person.examples, 'example face')})" for person in known)
            if not typer.confirm(f"Delete {who} for good?", err=True):
                say("nobody was removed")
                raise typer.Exit(1)
        opened.people.remove(*names)
    if json:
        print_json({"removed": names})
    else:
        typer.echo(f"removed {', '.join(names)}")


for part in (groups, suggestions, mending, history, exchange, tags):
    app.add_typer(part.app)
