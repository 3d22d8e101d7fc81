"""`setnet people`: save people by name; list, edit, merge, remove them; undo changes; export and import."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.groups import app as groups_app
from setnet.cli.options import (
    JsonOption,
    LibraryOption,
    NameArgument,
    ToExistingOption,
    argument,
    confirm_existing,
    make_app,
    open_library,
    option,
)
from setnet.cli.output import (
    print_either,
    print_facts,
    print_json,
    print_person,
    print_rows,
    print_table,
    say,
)
from setnet.cli.tags import import_tags
from setnet.errors import InvalidInputError, TakenError
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import Example, People, Person

app = make_app()


@app.callback()
def people() -> None:
    """Find who is in the photos; save people by name; edit, merge, remove them; undo changes.

    `discover` groups unknown faces, `name` gives a group a name. A GROUP is what it lists, such as g17.

    A NAME is what somebody is called, an alias of theirs, or their id. Upper and lower case are alike.
    """


@app.command()
def add(
    name: NameArgument,
    images: Annotated[
        list[str],
        argument(
            "IMAGE", "Photos of them (the largest face; group.jpg#3 is the third from the left), or folders."
        ),
    ],
    to_existing: ToExistingOption = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Save a person, or add example faces to a saved one.

    Faces are added to a saved person when the name is spelt as it is saved and they look alike. Otherwise a
    terminal asks, and a program needs --to-existing. The same face twice counts once.
    """
    with open_library(library) as opened:
        examples, notes = opened.people.examples_in(images)
        try:
            person, more = opened.people.save(name, examples, "add" if to_existing else "ask")
        except TakenError as error:
            if not confirm_existing(error):
                raise
            person, more = opened.people.save(name, examples, "add")
    for note in (*notes, *more):
        say(f"note: {note}")
    print_person(person, json, notes=[*notes, *more])


@app.command("list")
def list_people(library: LibraryOption = None, json: JsonOption = False) -> None:
    """List the saved people."""
    with open_library(library) as opened:
        known = list(opened.people)
    rows = [(p.name, p.examples, p.id, ", ".join(p.aliases)) for p in known]
    columns = ["name", "examples", "id", "also called"]
    empty = "nobody is saved yet: `setnet people add NAME PHOTO...`"
    print_rows({"people": known}, json, columns, rows, empty, right=["examples"])


@app.command()
def show(name: NameArgument, library: LibraryOption = None, json: JsonOption = False) -> None:
    """Show who a person is, in how many photos they are, and each example face with its number."""
    with open_library(library) as opened:
        known = opened.people.details(name)
    if json:
        print_json(known.to_dict())
        return
    person = known.person
    photos, examples = pluralise(known.photos, "photo"), pluralise(person.examples, "example face")
    typer.echo(f"{person.name}: in {photos}, known by {examples}")
    print_facts(_facts(person))
    _print_examples(known.examples, person.cover)


def _facts(person: Person) -> list[tuple[str, str]]:
    facts = [("id", person.id)]
    if person.aliases:
        facts.append(("also called", ", ".join(person.aliases)))
    if person.note:
        facts.append(("note", person.note))
    return facts


@app.command()
def rename(
    name: NameArgument,
    new: Annotated[str, argument("NEW")],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Give a person another name; the id stays."""
    with open_library(library) as opened:
        person = opened.people.rename(name, new)
    print_person(person, json, f"{name} is now {person.name}")


@app.command()
def merge(
    name: NameArgument,
    others: Annotated[list[str], argument("OTHER")],
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
    names: Annotated[list[str], argument("NAME")],
    for_good: Annotated[
        bool, option("Delete them without undo; who was removed before, too.", "--for-good")
    ] = False,
    yes: Annotated[bool, option("Do not ask at a terminal; needed where there is none.", "--yes")] = False,
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
            _confirm_removal(opened.people, names, for_good)
        done = opened.people.remove(*names, for_good=for_good)
    if json:
        print_json({"removed": names, "changes": [change.id for change in done], "for_good": for_good})
    else:
        typer.echo(f"removed {', '.join(names)}{' for good' if for_good else ''}")


def _confirm_removal(people: People, names: list[str], for_good: bool) -> None:
    """Ask whether people shall be removed; a program has to say --yes."""
    if not sys.stdin.isatty():
        raise InvalidInputError("nobody was removed: without a terminal to ask, --yes says that you mean it")
    known = [people.get(name) if name in people else None for name in names]
    who = ", ".join(
        f"{person.name} ({pluralise(person.examples, 'example face')})" if person else name
        for name, person in zip(names, known, strict=True)
    )
    if not typer.confirm(f"Delete {who} for good?" if for_good else f"Remove {who}?", err=True):
        say("nobody was removed")
        raise typer.Exit(1)


NumbersArgument = Annotated[list[int], argument("N", "Numbers of examples, as `people show` has them.")]
FacesArgument = Annotated[
    list[str], argument("PHOTO#N", "A face of an indexed photo: group.jpg#3 is the third from the left.")
]


@app.command()
def edit(
    name: NameArgument,
    alias: Annotated[
        list[str] | None, option("Another name that finds them; may be repeated.", metavar="NAME")
    ] = None,
    no_alias: Annotated[
        list[str] | None, option("Not called so any more; may be repeated.", metavar="NAME")
    ] = None,
    note: Annotated[str | None, option("What to remember of them; '' for nothing.", metavar="TEXT")] = None,
    cover: Annotated[
        int | None, option("The example whose picture stands for them; 0 for the oldest.", min=0, metavar="N")
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Change a person's other names, note or picture."""
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
    name: NameArgument,
    remove: Annotated[list[int] | None, option("Remove this example; may be repeated.", metavar="N")] = None,
    for_good: Annotated[
        bool, option("With --remove: without undo, and without a trace.", "--for-good")
    ] = False,
    pictures: Annotated[
        Path | None, option("Write the pictures there, as NUMBER.jpg.", metavar="FOLDER")
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """List a person's example faces with their numbers, or remove some of them.

    An origin is portrait (a photo you gave), confirmed (a match), group (a group you named) or import.
    """
    from setnet.library.pictures import write_pictures

    if for_good and not remove:
        raise InvalidInputError("--for-good goes with --remove")
    with open_library(library) as opened:
        if remove:
            print_person(opened.people.remove_examples(name, remove, for_good=for_good), json)
            return
        person, known = opened.people.get(name), opened.people.examples(name)
        if pictures is not None:
            say(f"{write_pictures(known, pictures)} picture(s) in {pictures}")
    if json:
        print_json({"person": person, "examples": [example.to_dict() for example in known]})
    else:
        _print_examples(known, person.cover)


def _print_examples(known: Sequence[Example], cover: int | None) -> None:
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


@app.command()
def split(
    name: NameArgument,
    new: Annotated[str, argument("NEW")],
    numbers: NumbersArgument,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Split examples off NAME: they become the new person NEW."""
    with open_library(library) as opened:
        person = opened.people.split(name, numbers, new)
    print_person(person, json)


@app.command()
def move(
    name: NameArgument,
    to: Annotated[str, argument("TO")],
    numbers: NumbersArgument,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Move examples from NAME to another saved person."""
    with open_library(library) as opened:
        person = opened.people.move(name, numbers, to)
    print_person(person, json)


@app.command()
def confirm(
    name: NameArgument, faces: FacesArgument, library: LibraryOption = None, json: JsonOption = False
) -> None:
    """Say that faces are this person: they become examples, and nobody else's.

    What was said is kept when photos are moved, copied, indexed again or described by another model.
    """
    with open_library(library) as opened:
        for photo, face in [opened.photos.face_at(text) for text in faces]:
            person = opened.people.confirm(name, photo, face)
    print_person(person, json)


@app.command()
def refuse(
    name: NameArgument, faces: FacesArgument, library: LibraryOption = None, json: JsonOption = False
) -> None:
    """Say that faces are not this person: they never match them again.

    What was said is kept when photos are moved, copied, indexed again or described by another model.
    """
    with open_library(library) as opened:
        for photo, face in [opened.photos.face_at(text) for text in faces]:
            person = opened.people.reject(name, photo, face)
    print_person(person, json)


@app.command()
def undo(
    change: Annotated[
        int | None,
        option("This change, as `people history` numbers it [default: last].", min=1, metavar="ID"),
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Undo the last change of people; again, the one before it.

    `--change` undoes another one. An undo is a change too: undoing it redoes what it undid.
    """
    with open_library(library) as opened:
        done = opened.people.undo(change)
    print_either(done, f"{done.summary} (change {done.id})", json)


@app.command()
def history(
    limit: Annotated[int, option("How many changes to list.", "-n", min=1, metavar="N")] = 20,
    erase: Annotated[
        bool, option("Delete the whole journal for good: nothing can be undone then.", "--erase")
    ] = False,
    yes: Annotated[bool, option("With --erase: do not ask for confirmation.", "--yes")] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """List the changes of people, latest first.

    The journal keeps former names, and examples that were removed, until it is erased.
    """
    with open_library(library) as opened:
        if erase:
            if not yes and not typer.confirm("Delete the journal of changes for good?", err=True):
                say("nothing was deleted")
                raise typer.Exit(1)
            erased = opened.people.erase_history()
            print_either({"erased": erased}, f"{erased} change(s) erased from the journal", json)
            return
        changes = opened.people.history(limit)
    rows = [
        (
            change.id,
            datetime.fromtimestamp(change.at).isoformat(" ", "seconds"),
            change.summary,
            f"undone by {change.undone_by}" if change.undone_by else "",
        )
        for change in changes
    ]
    empty = "no change of people is in the journal"
    print_rows({"changes": changes}, json, ["", "when", "what", ""], rows, empty, right=[""])


@app.command("export")
def export_people(
    file: Annotated[Path, argument("FILE", "Where to write it.")],
    without_descriptors: Annotated[
        bool,
        option("Leave them out: import then finds the faces again in the photos.", "--without-descriptors"),
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Write all saved people to a JSON file: names, example faces with pictures, confirmed and refused faces.

    With descriptors it fits libraries of the same descriptor model; without, any that has the same photos.
    """
    with open_library(library) as opened:
        done = opened.people.export(file, descriptors=not without_descriptors)
    people, examples = pluralise(done.people, "person", "people"), pluralise(done.examples, "example face")
    text = f"{people}, {examples} and {pluralise(done.verdicts, 'verdict')} in {file}"
    print_either(asdict(done) | {"file": str(file)}, text, json)


@app.command("import")
def import_people(
    file: Annotated[Path, argument("FILE", "A file of `people export`.")],
    without_descriptors: Annotated[
        bool, option("Find the faces again in the photos of this library.", "--without-descriptors")
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Add the people of a file to those saved here; who is here already gets what is missing.

    Importing a file twice changes nothing. The exit status is 1 if faces were not found.
    """
    with open_library(library) as opened:
        done = opened.people.import_file(file, descriptors=not without_descriptors)
    for note in done.notes:
        say(f"note: {note}")
    text = (
        f"{pluralise(done.people, 'person', 'people')} in the file, {done.new} of them new; "
        f"{pluralise(done.examples, 'example face')} and {pluralise(done.verdicts, 'verdict')} added"
    )
    print_either(done, text, json)
    if done.not_found:
        raise typer.Exit(1)


app.add_typer(groups_app)
app.command("import-tags")(import_tags)
