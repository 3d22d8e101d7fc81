"""`setnet people`: save people by name; list, edit, merge, remove them; undo changes; export and import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.groups import app
from setnet.cli.options import (
    FacesArgument,
    ForGoodOption,
    LimitOption,
    NameArgument,
    NumbersArgument,
    ToExistingOption,
    WithoutDescriptorsOption,
    YesOption,
    argument,
    complete_names,
    option,
    require_yes,
    save_person,
)
from setnet.cli.output import count_photos, say
from setnet.cli.tags import import_tags
from setnet.errors import InvalidInputError
from setnet.library.paths import resolve_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import Box
    from setnet.library import Example, Person

_SAVED, _EXAMPLES, _EXCHANGE = "Saved people", "Examples and corrections", "Undo, export, import"


@app.callback()
def people() -> None:
    """Find who is in the photos; save people by name; edit, merge, remove them; undo changes.

    `discover` groups unknown faces, `name` gives a group a name. A GROUP is what it lists, such as g17.

    A NAME is what somebody is called, an alias of theirs, or their id. Upper and lower case are alike.
    """


def _about(person: Person, text: str = "", **more: object) -> Result:
    """Return a person as a result: in a line, or as JSON with what is given beside."""
    line = text or f"{person.name}: {pluralise(person.examples, 'example face')}"
    return Result(asdict(person) | more, line)


@command(app, panel=_SAVED)
def add(
    call: Call,
    name: NameArgument,
    images: Annotated[
        list[str],
        argument(
            "IMAGE", "Photos of them (the largest face; group.jpg#3 is the third from the left), or folders."
        ),
    ],
    to_existing: ToExistingOption = False,
) -> Result:
    """Save a person, or add example faces to a saved one.

    Faces are added to a saved person when the name is spelt as it is saved and they look alike. Otherwise a
    terminal asks, and a program needs --to-existing. The same face twice counts once.
    """
    saved = call.library.people
    examples, notes = saved.examples_in(images)
    person, more = save_person(lambda if_exists: saved.save(name, examples, if_exists), to_existing)
    notes = [*notes, *more]
    for note in notes:
        say(f"note: {note}")
    return _about(person, notes=notes)


@command(app, "list", panel=_SAVED)
def list_people(call: Call) -> Result:
    """List the saved people."""
    known = list(call.library.people)
    rows = [(p.name, p.examples, p.id, ", ".join(p.aliases)) for p in known]
    columns = ["name", "examples", "id", "also called"]
    empty = "nobody is saved yet: `setnet people add NAME PHOTO...`"
    return Result({"people": known}, Rows(columns, rows, empty, ["examples"]))


@command(app, panel=_SAVED)
def show(call: Call, name: NameArgument) -> Result:
    """Show who a person is, in how many photos they are, and each example face with its number."""
    saved = call.library.people
    person, known, found = saved.get(name), saved.examples(name), saved.photos(name, limit=0)
    photos = count_photos(found.total, found.sure)
    examples = pluralise(person.examples, "example face")
    counts = {"photos": found.total, "sure_photos": found.sure}
    lines = [f"{person.name}: in {photos}, known by {examples}", f"id: {person.id}", *_known_facts(person)]
    facts = asdict(person) | counts | {"examples": known}
    return Result(facts, *lines, _example_rows(known, person.cover))


def _known_facts(person: Person) -> list[str]:
    aliases = [f"also called: {', '.join(person.aliases)}"] if person.aliases else []
    return aliases + ([f"note: {person.note}"] if person.note else [])


@command(app, panel=_SAVED)
def together(
    call: Call,
    name: Annotated[
        str | None, argument("NAME", "Only sets with this person.", autocompletion=complete_names)
    ] = None,
    limit: LimitOption = 20,
    min_people: Annotated[
        int, option("Sets of at least this many people, up to five.", min=2, max=5, metavar="N")
    ] = 2,
) -> Result:
    """List who is in photos together, and how often: pairs and larger sets of saved people.

    A photo counts if it surely shows all of them.
    """
    found = call.library.people.together(name, min_people=min_people)[:limit]
    rows = [(one.photos, ", ".join(one.people)) for one in found]
    empty = "no photo surely shows several saved people"
    return Result({"together": found}, Rows(["photos", "who"], rows, empty, ["photos"]), status=not found)


@command(app, panel=_SAVED)
def rename(call: Call, name: NameArgument, new: Annotated[str, argument("NEW")]) -> Result:
    """Give a person another name; the id stays."""
    person = call.library.people.rename(name, new)
    return _about(person, f"{name} is now {person.name}")


@command(app, panel=_SAVED)
def merge(
    call: Call,
    name: NameArgument,
    others: Annotated[list[str], argument("OTHER", autocompletion=complete_names)],
    unlike: Annotated[bool, option("Also if their faces do not look alike.", "--unlike")] = False,
) -> Result:
    """Merge OTHER people into NAME: what is theirs becomes NAME's, and their names are gone.

    If their faces do not look alike, a terminal asks, and a program needs --unlike. `setnet people undo`
    takes them apart again.
    """
    people = call.library.people

    def merge_if(answer: str) -> Person:
        return people.merge(name, others, "merge" if answer == "add" else "ask")

    return _about(save_person(merge_if, unlike, "--unlike"))


@command(app, panel=_SAVED)
def remove(
    call: Call,
    names: Annotated[list[str], argument("NAME", autocompletion=complete_names)],
    for_good: ForGoodOption = False,
    yes: YesOption = False,
) -> Result:
    """Remove saved people, with their example faces; photos stay in the library.

    `setnet people undo` brings them back. --for-good deletes them, and who was removed before, from every
    file of the library, and the changes that concerned them from the journal.
    """
    saved = call.library.people
    known = [saved.get(name) if name in saved or not for_good else name for name in names]
    who = ", ".join(  # for good also those who were removed before
        one if isinstance(one, str) else f"{one.name} ({pluralise(one.examples, 'example face')})"
        for one in known
    )
    question = f"Delete {who} for good?" if for_good else f"Remove {who}?"
    require_yes(question, "nobody was removed", yes)
    done = saved.remove(*names, for_good=for_good)
    facts = {"removed": names, "changes": [change.id for change in done], "for_good": for_good}
    return Result(facts, f"removed {', '.join(names)}{' for good' if for_good else ''}")


@command(app, panel=_SAVED)
def edit(
    call: Call,
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
) -> Result:
    """Change a person's other names, note or picture."""
    if alias is None and no_alias is None and note is None and cover is None:
        raise InvalidInputError("say what to change: --alias, --no-alias, --note or --cover")
    saved, aliases = call.library.people, None
    if alias is not None or no_alias is not None:
        aliases = saved.aliases(name, add=alias or (), drop=no_alias or ())
    person = saved.edit(name, aliases=aliases, note=note, cover=cover)
    return _about(person, "\n".join([person.name, *_known_facts(person)]))


@command(app, panel=_EXAMPLES)
def examples(
    call: Call,
    name: NameArgument,
    remove: Annotated[list[int] | None, option("Remove this example; may be repeated.", metavar="N")] = None,
    for_good: ForGoodOption = False,
) -> Result:
    """List a person's example faces with their numbers, or remove some of them.

    An origin is portrait (a photo you gave), confirmed (a match), group (a group you named) or import.
    --for-good goes with --remove.
    """
    if for_good and not remove:
        raise InvalidInputError("--for-good goes with --remove")
    saved = call.library.people
    if remove:
        return _about(saved.remove_examples(name, remove, for_good=for_good))
    person, known = saved.get(name), saved.examples(name)
    return Result({"person": person, "examples": known}, _example_rows(known, person.cover))


def _example_rows(known: Sequence[Example], cover: int | None) -> Rows:
    """Return example faces, one in a line."""
    rows = [
        (
            example.number,
            example.origin,
            "cover" if example.number == cover else "yes" if example.picture else "-",
            example.source or "-",
        )
        for example in known
    ]
    return Rows(["", "origin", "picture", "from"], rows, right=[""])


@command(app, panel=_EXAMPLES)
def split(
    call: Call, name: NameArgument, new: Annotated[str, argument("NEW")], numbers: NumbersArgument
) -> Result:
    """Split examples off NAME: they become the new person NEW."""
    return _about(call.library.people.split(name, numbers, new))


@command(app, panel=_EXAMPLES)
def move(
    call: Call,
    name: NameArgument,
    to: Annotated[str, argument("TO", autocompletion=complete_names)],
    numbers: NumbersArgument,
) -> Result:
    """Move examples from NAME to another saved person."""
    return _about(call.library.people.move(name, numbers, to))


@command(app, panel=_EXAMPLES)
def confirm(call: Call, name: NameArgument, faces: FacesArgument) -> Result:
    """Say that faces are this person: they become examples, and nobody else's.

    What was said is kept when photos are moved, copied, indexed again or described by another model.
    """
    places = [call.library.photos.face_at(text) for text in faces]
    return _about([call.library.people.confirm(name, photo, face) for photo, face in places][-1])


@command(app, panel=_EXAMPLES)
def reject(call: Call, name: NameArgument, faces: FacesArgument) -> Result:
    """Say that faces are not this person: they never match them again.

    What was said is kept when photos are moved, copied, indexed again or described by another model.
    """
    places = [call.library.photos.face_at(text) for text in faces]
    done = [call.library.people.reject(name, photo, face) for photo, face in places]
    notes = [note for _, remarks in done for note in remarks]
    for note in notes:
        say(f"note: {note}")
    return _about(done[-1][0], notes=notes)


@command(app, panel=_EXAMPLES)
def tag(
    call: Call,
    photo: Annotated[Path, argument("PHOTO", "An indexed photo.")],
    name: NameArgument,
    box: Annotated[
        str | None,
        option("Where: left, top, width and height in pixels of the upright photo.", metavar="X,Y,W,H"),
    ] = None,
    remove: Annotated[bool, option("Take the tag back.", "--remove")] = False,
) -> Result:
    """Say that somebody is in a photo, also where no face was found: searches find it as a sure match.

    A tag is no example: faces are not compared with it.
    """
    found = call.library.photos.photo_at(resolve_path(photo))
    people = call.library.people
    if remove:
        if box is not None:
            raise InvalidInputError("a person has one tag in a photo: leave out --box to remove it")
        return _about(people.untag(name, found.id), f"{name} is not tagged in {found.display_name} any more")
    person = people.tag(name, found.id, None if box is None else _box(box))
    return _about(person, f"{person.name} is in {found.display_name}")


def _box(text: str) -> Box:
    from setnet.faces import Box

    try:
        x, y, width, height = map(float, text.split(","))
    except ValueError:
        raise InvalidInputError(f"{text!r} is no box: write left,top,width,height in pixels") from None
    return Box(x, y, x + width, y + height)


@command(app, panel=_EXCHANGE)
def undo(
    call: Call,
    change: Annotated[
        int | None,
        option("This change, as `people history` numbers it [default: last].", min=1, metavar="ID"),
    ] = None,
) -> Result:
    """Undo the last change of people; again, the one before it.

    `--change` undoes another one. An undo is a change too: undoing it redoes what it undid.
    """
    done = call.library.people.undo(change)
    return Result(done, f"{done.summary} (change {done.id})")


@command(app, panel=_EXCHANGE)
def history(
    call: Call,
    limit: LimitOption = 20,
    erase: Annotated[
        bool, option("Delete the whole journal for good: nothing can be undone then.", "--erase")
    ] = False,
    yes: YesOption = False,
) -> Result:
    """List the changes of people, latest first.

    The journal keeps former names, and examples that were removed, until it is erased.
    """
    if erase:
        require_yes("Delete the journal of changes for good?", "nothing was deleted", yes)
        erased = call.library.people.erase_history()
        return Result({"erased": erased}, f"{pluralise(erased, 'change')} erased from the journal")
    changes = call.library.people.history(limit)
    rows = [
        (
            change.id,
            change.at.astimezone().replace(tzinfo=None).isoformat(" ", "seconds"),
            change.summary,
            f"undone by {change.undone_by}" if change.undone_by else "",
        )
        for change in changes
    ]
    empty = "no change of people is in the journal"
    return Result({"changes": changes}, Rows(["", "when", "what", ""], rows, empty, [""]))


@command(app, "export", panel=_EXCHANGE)
def export_people(
    call: Call,
    file: Annotated[Path, argument("FILE", "Where to write it.")],
    without_descriptors: WithoutDescriptorsOption = False,
) -> Result:
    """Write all saved people to a JSON file: names, example faces with pictures, confirmed, rejected faces.

    With descriptors it fits libraries of the same descriptor model; without, any that has the same photos.
    """
    done = call.library.people.export(file, descriptors=not without_descriptors)
    people, examples = pluralise(done.people, "person", "people"), pluralise(done.examples, "example face")
    text = f"{people}, {examples} and {pluralise(done.labels, 'label')} in {file}"
    return Result(asdict(done) | {"file": str(file)}, text)


@command(app, "import", panel=_EXCHANGE)
def import_people(
    call: Call,
    file: Annotated[Path, argument("FILE", "A file of `people export`.")],
    without_descriptors: WithoutDescriptorsOption = False,
) -> Result:
    """Add the people of a file to those saved here; who is here already gets what is missing.

    Importing a file twice changes nothing. The exit status is 1 if faces were not found.
    """
    done = call.library.people.import_file(file, descriptors=not without_descriptors)
    for note in done.notes:
        say(f"note: {note}")
    text = (
        f"{pluralise(done.people, 'person', 'people')} in the file, {done.new} of them new; "
        f"{pluralise(done.examples, 'example face')} and {pluralise(done.labels, 'label')} added"
    )
    return Result(done, text, status=bool(done.not_found))


command(app, "import-tags", panel=_EXCHANGE, interrupted="nothing was changed")(import_tags)
