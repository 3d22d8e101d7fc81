"""`setnet people discover`, `name`, `hide`, `unhide`: unknown faces, grouped."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.people.person_text import Name, ToExisting, agrees, print_person
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.library import Group, Library

app = make_app()

GroupId = Annotated[str, typer.Argument(metavar="GROUP", show_default=False)]
GroupIds = Annotated[list[str], typer.Argument(metavar="GROUP", show_default=False)]
_MOST_ROWS = 100


@app.command()
def discover(
    anew: Annotated[
        bool, typer.Option("--anew", help="Group all faces again but those of named and hidden groups.")
    ] = False,
    min_faces: Annotated[
        int, typer.Option(min=1, metavar="N", help="List groups of at least this many faces.")
    ] = 2,
    every: Annotated[bool, typer.Option("--all", help="List named and hidden groups too.")] = False,
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the groups listed: out.png or out.html.")
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Group unknown faces by person, and list the groups, the largest first.

    `setnet index` groups new faces too. A group keeps its id; with `people name` it gets the name of a
    person, with `people hide` it is not listed any more. Ctrl-C leaves the groups as they were. With --json
    all groups and their faces are printed, whatever is listed.
    """
    from setnet.cli.library.index_progress import IndexProgressBar
    from setnet.library import IndexProgress, group_sheet

    with open_library(library) as opened:
        with IndexProgressBar(silent=json) as bar:

            def show(stage: str, done: int, total: int) -> None:
                bar.show(IndexProgress(stage, done, total, 0, 0, 0, 0.0))

            report = opened.discover(anew=anew, progress=show)
        if report.interrupted:
            say("stopped; the groups are as they were")
            raise typer.Exit(130)
        listed = opened.groups.page("all" if every else "unnamed", min_faces)
        if sheet is not None:
            group_sheet(opened, listed, sheet)
            say(f"sheet: {sheet}")
        if json:
            print_json({"groups": _everything(opened)})
        else:
            _print(opened, listed, min_faces)


def _everything(library: Library) -> list[dict[str, Any]]:
    faces: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for number, face in library.groups.all_members():
        facts = face.to_dict()
        faces[f"g{number}"].append(
            {"photo": os.fsdecode(face.path), "face": face.face + 1, "box": facts["box"]}
        )
    return [group.to_dict() | {"faces": faces[group.id]} for group in library.groups.page()]


def _print(library: Library, listed: Sequence[Group], min_faces: int) -> None:
    if listed:
        rows = [
            (
                group.id,
                f"{group.name or ''}{' (hidden)' if group.hidden else ''}",
                f"{group.faces:,}",
                f"{group.photos:,}",
                *(moment.date() if moment else "-" for moment in (group.first, group.last)),
            )
            for group in listed[:_MOST_ROWS]
        ]
        print_table(["group", "name", "faces", "photos", "first", "last"], rows, right=["faces", "photos"])
    if len(listed) > _MOST_ROWS:
        say(f"... and {len(listed) - _MOST_ROWS:,} more: --min-faces, --sheet or --json")
    totals = library.groups.totals(min_faces)
    smaller = library.groups.totals().unnamed - totals.unnamed
    say(
        f"{counted(totals.unnamed, 'group')} without a name, {totals.named:,} named, {totals.hidden:,} hidden"
        + (f"; {smaller:,} more without a name have fewer than {min_faces} faces" if smaller else "")
    )
    if totals.unnamed:
        say("`setnet people name GROUP NAME` names one; --sheet groups.html shows their faces")


@app.command("name")
def name_group(
    group: GroupId,
    name: Name,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PHOTO#N",
            help="A face that is not theirs: group.jpg#3 is the third from the left; may be repeated.",
        ),
    ] = None,
    to_existing: ToExisting = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Give a group the name of a person, new or saved.

    A dozen of its faces become examples, and searches for the person find all its faces. Several groups may
    be one person's: the second time a terminal asks, and a program needs --to-existing.
    """
    from setnet.errors import TakenError

    with open_library(library) as opened:
        left_out = [opened.face_at(text) for text in without or ()]
        try:
            person, notes = opened.name_group(group, name, left_out, "add" if to_existing else "ask")
        except TakenError as error:
            if not agrees(error):
                raise
            person, notes = opened.name_group(group, name, left_out, "add")
        named = opened.groups.get(group)
    for note in notes:
        say(f"note: {note}")
    faces, examples = counted(named.faces, "face"), counted(person.examples, "example face")
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
        print_json({"groups": [group.to_dict() for group in changed]})
    else:
        what = "hidden" if hidden else "listed again"
        typer.echo(f"{', '.join(group.id for group in changed)}: {what}")
