"""Commands of `setnet people` about faces without a name.

`discover` groups unknown faces, `name`, `hide` and `unhide` say who a group is, `suggest` asks about groups
that may be a saved person's, `photos` lists all photos of one person.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from setnet.cli.output import ProgressBar, print_json, print_person, print_rows, print_table, say
from setnet.errors import TakenError
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import Group, Library, Suggestion

app = make_app()

GroupId = Annotated[str, argument("GROUP")]
GroupIds = Annotated[list[str], argument("GROUP")]
_MOST_ROWS = 100


@app.command()
def discover(
    anew: Annotated[
        bool, option("Group all faces again but those of named and hidden groups.", "--anew")
    ] = False,
    min_faces: Annotated[int, option("List groups of at least this many faces.", min=1, metavar="N")] = 2,
    every: Annotated[bool, option("List named and hidden groups too.", "--all")] = False,
    sheet: Annotated[
        Path | None, option("Also draw the groups listed: out.png or out.html.", metavar="FILE")
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Group unknown faces by person, and list the groups, the largest first.

    `setnet index` groups new faces too. A group keeps its id; with `people name` it gets the name of a
    person, with `people hide` it is not listed any more. Ctrl-C leaves the groups as they were. With --json
    all groups and their faces are printed, whatever is listed.
    """
    from setnet.library import group_sheet

    with open_library(library) as opened:
        try:
            with ProgressBar(silent=json) as bar:
                opened.groups.update(anew=anew, progress=bar.show)
        except KeyboardInterrupt:
            say("stopped; the groups are as they were")
            raise typer.Exit(130) from None
        listed = opened.groups.page("all" if every else "unnamed", min_faces)
        if sheet is not None:
            group_sheet(opened, listed, sheet)
            say(f"sheet: {sheet}")
        if json:
            print_json({"groups": _all_groups(opened)})
        else:
            _print_groups(opened, listed, min_faces)


def _all_groups(library: Library) -> list[dict[str, Any]]:
    faces: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for number, face in library.groups.all_members():
        facts = face.to_dict()
        faces[f"g{number}"].append(
            {"photo": os.fsdecode(face.path), "face": face.face + 1, "box": facts["box"]}
        )
    return [asdict(group) | {"faces": faces[group.id]} for group in library.groups.page()]


def _print_groups(library: Library, listed: Sequence[Group], min_faces: int) -> None:
    if listed:
        rows = [
            (
                group.id,
                f"{group.name or ''}{' (hidden)' if group.hidden else ''}",
                f"{group.faces:,}",
                f"{group.photos:,}",
                group.first or "-",
                group.last or "-",
            )
            for group in listed[:_MOST_ROWS]
        ]
        print_table(["group", "name", "faces", "photos", "first", "last"], rows, right=["faces", "photos"])
    if len(listed) > _MOST_ROWS:
        say(f"... and {len(listed) - _MOST_ROWS:,} more: --min-faces, --sheet or --json")
    totals = library.groups.totals(min_faces)
    smaller = library.groups.totals().unnamed - totals.unnamed
    say(
        f"{pluralise(totals.unnamed, 'group')} without a name, {totals.named:,} named, "
        f"{totals.hidden:,} hidden"
        + (f"; {smaller:,} more without a name have fewer than {min_faces} faces" if smaller else "")
    )
    if totals.unnamed:
        say("`setnet people name GROUP NAME` names one; --sheet groups.html shows their faces")


@app.command("name")
def name_group(
    group: GroupId,
    name: NameArgument,
    without: Annotated[
        list[str] | None,
        option(
            "A face that is not theirs: group.jpg#3 is the third from the left; may be repeated.",
            metavar="PHOTO#N",
        ),
    ] = None,
    to_existing: ToExistingOption = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Give a group the name of a person, new or saved.

    A dozen of its faces become examples, and searches for the person find all its faces. Several groups may
    be one person's: the second time a terminal asks, and a program needs --to-existing.
    """
    with open_library(library) as opened:
        left_out = [opened.photos.face_at(text) for text in without or ()]
        try:
            person, notes = opened.groups.name(group, name, left_out, "add" if to_existing else "ask")
        except TakenError as error:
            if not confirm_existing(error):
                raise
            person, notes = opened.groups.name(group, name, left_out, "add")
        named = opened.groups.get(group)
    for note in notes:
        say(f"note: {note}")
    faces, examples = pluralise(named.faces, "face"), pluralise(person.examples, "example face")
    text = f"{named.id} is {person.name}: {faces}, {examples}"
    print_person(person, json, text, notes=notes)


@app.command()
def hide(groups: GroupIds, library: LibraryOption = None, json: JsonOption = False) -> None:
    """Hide groups of nobody you know: `people discover` does not list them, whatever faces join them."""
    _hide(groups, True, library, json)


@app.command()
def unhide(groups: GroupIds, library: LibraryOption = None, json: JsonOption = False) -> None:
    """List groups again that were hidden."""
    _hide(groups, False, library, json)


def _hide(groups: Sequence[str], hidden: bool, library: Path | None, json: bool) -> None:
    with open_library(library) as opened:
        changed = opened.groups.hide(groups, hidden)
    if json:
        print_json({"groups": changed})
    else:
        what = "hidden" if hidden else "listed again"
        typer.echo(f"{', '.join(group.id for group in changed)}: {what}")


_SHOWN_FACES = 4
_NO_SUGGESTION = "no group without a name looks like a saved person"


@app.command()
def suggest(
    name: Annotated[str | None, argument("NAME", "Only for this person.")] = None,
    limit: Annotated[int, option("How many groups at most.", min=1, metavar="N")] = 20,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Ask about groups that may be a saved person's, the most probable first.

    At a terminal one key answers: y (yes, it gets the name), n (no, never again), s (skip), q (quit).
    `people undo` takes an answer back. Elsewhere, and with --json, they are listed.
    """
    with open_library(library) as opened:
        if not json and sys.stdin.isatty():
            _ask_about_groups(opened, name, limit)
            return
        found = opened.groups.suggestions(name, limit)
    rows = [
        (s.group.id, s.person, s.group.faces, f"{s.probability:.0%}", f"{s.similarity:.2f}") for s in found
    ]
    columns = ["group", "maybe", "faces", "probability", "similarity"]
    print_rows({"suggestions": found}, json, columns, rows, _NO_SUGGESTION, right=columns[2:])
    if found and not json:
        say("`setnet people name GROUP NAME --to-existing` confirms one")


def _ask_about_groups(library: Library, name: str | None, limit: int) -> None:
    skipped: set[str] = set()
    answered = 0
    while answered < limit and (suggestion := _next_suggestion(library, name, skipped)) is not None:
        answered += 1
        _show_suggestion(library, suggestion)
        key = ""
        while key not in ("y", "n", "s", "q"):
            key = typer.getchar().lower()
            if key in ("\x03", "\x04"):
                key = "q"
        if key == "q":
            return
        if key == "y":
            library.groups.name(suggestion.group.id, suggestion.id, if_exists="add")
            say(f"{suggestion.group.id} is {suggestion.person}")
        elif key == "n":
            library.groups.reject(suggestion.group.id, suggestion.id)
            say(f"{suggestion.group.id} is not {suggestion.person}")
        skipped.add(suggestion.group.id)
    say("that was all" if answered else _NO_SUGGESTION)


def _next_suggestion(library: Library, name: str | None, skipped: set[str]) -> Suggestion | None:
    """Return the best suggestion that was not shown yet; each answer may change what follows."""
    found = library.groups.suggestions(name, 1 + len(skipped))
    return next((s for s in found if s.group.id not in skipped), None)


def _show_suggestion(library: Library, suggestion: Suggestion) -> None:
    group = suggestion.group
    for face in library.groups.members(group.id, _SHOWN_FACES):
        say(f"  {face.place}")
    if group.faces > _SHOWN_FACES:
        say(f"  ... and {group.faces - _SHOWN_FACES:,} more")
    faces = pluralise(group.faces, "face")
    say(f"Is {group.id} ({faces}) {suggestion.person}? {suggestion.probability:.0%}  [y/n/s/q]")


@app.command()
def photos(name: NameArgument, library: LibraryOption = None, json: JsonOption = False) -> None:
    """List all photos of a person, the latest taken first.

    Those with a face that is surely theirs, that you confirmed, or that is in a group of theirs.
    """
    with open_library(library) as opened:
        found = opened.people.photos(name)
    if json:
        print_json({"photos": [photo.to_dict() for photo in found.photos], "total": found.total})
        return
    rows: Sequence[Sequence[object]] = [
        (
            "-" if p.photo.taken is None else p.photo.taken.isoformat(" ", "minutes"),
            "" if p.sure else "by group",
            f"{display_path(p.photo.path)}#{p.face + 1}",
        )
        for p in found.photos
    ]
    if rows:
        print_table(["taken", "", "photo"], rows)
    say(pluralise(found.total, "photo"))
