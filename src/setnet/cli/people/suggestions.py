"""`setnet people suggest` and `photos`: more faces of saved people, and all photos of one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.people.person_text import Name
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library

if TYPE_CHECKING:
    from setnet.library import Library, Suggestion

app = make_app()

_SHOWN_FACES = 4


@app.command()
def suggest(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only for this person.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many groups at most.")] = 20,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Ask about groups that may be a saved person's, the most probable first.

    At a terminal one key answers: y (yes, it gets the name), n (no, never again), s (skip), q (quit).
    `people undo` takes an answer back. Elsewhere, and with --json, they are listed.
    """
    with open_library(library) as opened:
        if not json and sys.stdin.isatty():
            _ask(opened, name, limit)
            return
        found = opened.suggestions(name, limit)
    if json:
        print_json({"suggestions": [suggestion.to_dict() for suggestion in found]})
    elif found:
        rows = [
            (s.group.id, s.person, s.group.faces, f"{s.probability:.0%}", f"{s.similarity:.2f}")
            for s in found
        ]
        columns = ["group", "maybe", "faces", "probability", "similarity"]
        print_table(columns, rows, right=["faces", "probability", "similarity"])
        say("`setnet people name GROUP NAME --to-existing` confirms one")
    else:
        say("no group without a name looks like a saved person")


def _ask(library: Library, name: str | None, limit: int) -> None:
    skipped: set[str] = set()
    answered = 0
    while answered < limit and (suggestion := _next(library, name, skipped)) is not None:
        answered += 1
        _show(library, suggestion)
        key = ""
        while key not in ("y", "n", "s", "q"):
            key = typer.getchar().lower()
            if key in ("\x03", "\x04"):
                key = "q"
        if key == "q":
            return
        if key == "y":
            library.name_group(suggestion.group.id, suggestion.id, if_exists="add")
            say(f"{suggestion.group.id} is {suggestion.person}")
        elif key == "n":
            library.refuse_group(suggestion.group.id, suggestion.id)
            say(f"{suggestion.group.id} is not {suggestion.person}")
        skipped.add(suggestion.group.id)
    say("that was all" if answered else "no group without a name looks like a saved person")


def _next(library: Library, name: str | None, skipped: set[str]) -> Suggestion | None:
    """Return the best suggestion that was not shown yet; each answer may change what follows."""
    found = library.suggestions(name, 1 + len(skipped))
    return next((s for s in found if s.group.id not in skipped), None)


def _show(library: Library, suggestion: Suggestion) -> None:
    group = suggestion.group
    for face in library.groups.members(group.id, _SHOWN_FACES):
        say(f"  {face.place}")
    if group.faces > _SHOWN_FACES:
        say(f"  ... and {group.faces - _SHOWN_FACES:,} more")
    faces = "1 face" if group.faces == 1 else f"{group.faces:,} faces"
    say(f"Is {group.id} ({faces}) {suggestion.person}? {suggestion.probability:.0%}  [y/n/s/q]")


@app.command()
def photos(name: Name, library: LibraryOption = None, json: JsonOption = False) -> None:
    """List all photos of a person, the latest taken first.

    Those with a face that is surely theirs, that you confirmed, or that is in a group of theirs.
    """
    from setnet.library import display_path

    with open_library(library) as opened:
        found = opened.photos_with(name)
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
    say(f"{found.total:,} photo{'' if found.total == 1 else 's'}")
