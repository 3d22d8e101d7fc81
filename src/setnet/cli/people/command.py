"""`setnet people`: save people by name; list, show, rename, merge, remove them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_facts, print_json, print_table, say
from setnet.cli.people import exchange, groups, history, mending, suggestions, tags
from setnet.cli.people.person_text import Name, ToExisting, agrees, print_person
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.errors import InvalidInputError
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.library import People, Person

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
    for_good: Annotated[
        bool,
        typer.Option("--for-good", help="Delete them without undo; who was removed before, too."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask at a terminal; needed where there is none.")
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Remove saved people, with their example faces; photos stay in the library.

    `setnet people undo` brings them back. --for-good deletes them from every file of the library, and the
    changes that concerned them from the journal.
    """
    with open_library(library) as opened:
        for name in names:
            if not for_good:  # else they may have been removed before
                opened.people.get(name)
        if not yes:
            _ask(opened.people, names, for_good)
        done = opened.people.remove(*names, for_good=for_good)
    if json:
        print_json({"removed": names, "changes": [change.id for change in done], "for_good": for_good})
    else:
        typer.echo(f"removed {', '.join(names)}{' for good' if for_good else ''}")


def _ask(people: People, names: list[str], for_good: bool) -> None:
    """Ask whether people shall be removed; a program has to say --yes."""
    if not sys.stdin.isatty():
        raise InvalidInputError("nobody was removed: without a terminal to ask, --yes says that you mean it")
    known = [people.get(name) if name in people else None for name in names]
    who = ", ".join(
        f"{person.name} ({counted(person.examples, 'example face')})" if person else name
        for name, person in zip(names, known, strict=True)
    )
    if not typer.confirm(f"Delete {who} for good?" if for_good else f"Remove {who}?", err=True):
        say("nobody was removed")
        raise typer.Exit(1)


for part in (groups, suggestions, mending, history, exchange, tags):
    app.add_typer(part.app)
