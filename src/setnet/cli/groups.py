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
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import (
    LimitOption,
    NameArgument,
    SheetOption,
    ToExistingOption,
    argument,
    make_app,
    option,
    save_person,
)
from setnet.cli.output import count_photos, say
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import Group, Library, Suggestion

app = make_app()

_PANEL = "Who is in the photos"

GroupId = Annotated[str, argument("GROUP")]
GroupIds = Annotated[list[str], argument("GROUP")]


@command(app, panel=_PANEL, interrupted="the groups are as they were")
def discover(
    call: Call,
    again: Annotated[
        bool, option("Group all faces again but those of named and hidden groups.", "--again")
    ] = False,
    min_faces: Annotated[int, option("List groups of at least this many faces.", min=1, metavar="N")] = 2,
    every: Annotated[bool, option("List named and hidden groups too.", "--all")] = False,
    limit: LimitOption = 100,
    sheet: SheetOption = None,
) -> Result:
    """Group unknown faces by person, and list the groups, the largest first.

    `setnet index` groups new faces too. A group keeps its id; with `people name` it gets the name of a
    person, with `people hide` it is not listed any more. Ctrl-C leaves the groups as they were. --sheet draws
    all groups listed, --json has all groups and their faces.
    """
    from setnet.library import group_sheet

    groups = call.library.groups
    groups.update(again=again, progress=call.bar.show)
    call.bar.stop()
    listed = groups.page("all" if every else "unnamed", min_faces)
    if sheet is not None:
        group_sheet(call.library, listed, sheet)
        say(f"sheet: {sheet}")
    rows = [
        (
            group.id,
            f"{group.name or ''}{' (hidden)' if group.hidden else ''}",
            f"{group.faces:,}",
            f"{group.photos:,}",
            group.first or "-",
            group.last or "-",
        )
        for group in listed[:limit]
    ]
    columns = ["group", "name", "faces", "photos", "first", "last"]
    facts = {"groups": _all_groups(call.library)} if call.json else None
    remarks = _remarks(call.library, len(listed) - len(rows), min_faces)
    return Result(facts, Rows(columns, rows, right=["faces", "photos"]), remarks=remarks)


def _all_groups(library: Library) -> list[dict[str, Any]]:
    faces: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for number, face in library.groups.all_members():
        facts = face.to_dict()
        faces[f"g{number}"].append(
            {"photo": os.fsdecode(face.path), "face": face.face + 1, "box": facts["box"]}
        )
    return [asdict(group) | {"faces": faces[group.id]} for group in library.groups.page()]


def _remarks(library: Library, more: int, min_faces: int) -> list[str]:
    totals = library.groups.totals(min_faces)
    smaller = library.groups.totals().unnamed - totals.unnamed
    remarks = [f"... and {more:,} more: --limit, --min-faces, --sheet or --json"] if more else []
    remarks.append(
        f"{pluralise(totals.unnamed, 'group')} without a name, {totals.named:,} named, "
        f"{totals.hidden:,} hidden"
        + (f"; {smaller:,} more without a name have fewer than {min_faces} faces" if smaller else "")
    )
    if totals.unnamed:
        remarks.append("`setnet people name GROUP NAME` names one; --sheet groups.html shows their faces")
    return remarks


@command(app, "name", panel=_PANEL)
def name_group(
    call: Call,
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
) -> Result:
    """Give a group the name of a person, new or saved.

    A dozen of its faces become examples, and searches for the person find all its faces. Several groups may
    be one person's: the second time a terminal asks, and a program needs --to-existing.
    """
    groups = call.library.groups
    left_out = [call.library.photos.face_at(text) for text in without or ()]
    person, notes = save_person(lambda if_exists: groups.name(group, name, left_out, if_exists), to_existing)
    named = groups.get(group)
    for note in notes:
        say(f"note: {note}")
    faces, examples = pluralise(named.faces, "face"), pluralise(person.examples, "example face")
    return Result(asdict(person) | {"notes": notes}, f"{named.id} is {person.name}: {faces}, {examples}")


@command(app, panel=_PANEL)
def hide(call: Call, groups: GroupIds) -> Result:
    """Hide groups of nobody you know: `people discover` does not list them, whatever faces join them."""
    return _hide(call, groups, True)


@command(app, panel=_PANEL)
def unhide(call: Call, groups: GroupIds) -> Result:
    """List groups again that were hidden."""
    return _hide(call, groups, False)


def _hide(call: Call, groups: Sequence[str], hidden: bool) -> Result:
    changed = call.library.groups.hide(groups, hidden)
    what = "hidden" if hidden else "listed again"
    return Result({"groups": changed}, f"{', '.join(group.id for group in changed)}: {what}")


_SHOWN_FACES = 4
_NO_SUGGESTION = "no group without a name looks like a saved person"


@command(app, panel=_PANEL)
def suggest(
    call: Call,
    name: Annotated[str | None, argument("NAME", "Only for this person.")] = None,
    limit: LimitOption = 20,
) -> Result | None:
    """Ask about groups that may be a saved person's, the most probable first.

    At a terminal one key answers: y (yes, it gets the name), n (no, never again), s (skip), q (quit).
    `people undo` takes an answer back. Elsewhere, and with --json, they are listed.
    """
    if not call.json and sys.stdin.isatty():
        _ask_about_groups(call.library, name, limit)
        return None
    found = call.library.groups.suggestions(name, limit)
    rows = [
        (s.group.id, s.person, s.group.faces, f"{s.probability:.0%}", f"{s.similarity:.2f}") for s in found
    ]
    columns = ["group", "maybe", "faces", "probability", "similarity"]
    remarks = ["`setnet people name GROUP NAME --to-existing` confirms one"] if found else []
    return Result({"suggestions": found}, Rows(columns, rows, _NO_SUGGESTION, columns[2:]), remarks=remarks)


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
    group: Group = suggestion.group
    for face in library.groups.members(group.id, _SHOWN_FACES):
        say(f"  {face.place}")
    if group.faces > _SHOWN_FACES:
        say(f"  ... and {group.faces - _SHOWN_FACES:,} more")
    faces = pluralise(group.faces, "face")
    say(f"Is {group.id} ({faces}) {suggestion.person}? {suggestion.probability:.0%}  [y/n/s/q]")


@command(app, panel=_PANEL)
def photos(call: Call, name: NameArgument) -> Result:
    """List all photos of a person, the latest taken first.

    They are those that `setnet search` finds: a face looks like them, surely or maybe, is an example of them,
    was confirmed, or is in a group of theirs.
    """
    found = call.library.people.photos(name)
    rows = [
        (
            "-" if p.photo.taken is None else p.photo.taken.isoformat(" ", "minutes"),
            "" if p.sure else "maybe",
            display_path(p.photo.path) + ("" if p.face is None else f"#{p.face + 1}"),
        )
        for p in found.photos
    ]
    facts = {"photos": found.photos, "total": found.total, "sure": found.sure}
    return Result(facts, Rows(["taken", "", "photo"], rows), remarks=[count_photos(found.total, found.sure)])
