"""`setnet people undo` and `history`: the journal of changes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from setnet.cli.output import print_either, print_json, print_table, say
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library

app = make_app()


@app.command()
def undo(
    change: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="ID", help="This change, as `people history` numbers it [default: last]."
        ),
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Undo the last change of people; again, the one before it.

    `--change` undoes another one. An undo is a change too: undoing it redoes what it undid.
    """
    with open_library(library) as opened:
        done = opened.people.undo(change)
    print_either(done.to_dict(), f"{done.summary} (change {done.id})", json)


@app.command()
def history(
    limit: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many changes to list.")] = 20,
    erase: Annotated[
        bool, typer.Option("--erase", help="Delete the whole journal for good: nothing can be undone then.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --erase: do not ask for confirmation.")] = False,
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
    if json:
        print_json({"changes": [change.to_dict() for change in changes]})
    elif changes:
        rows = [
            (
                change.id,
                datetime.fromtimestamp(change.at).isoformat(" ", "seconds"),
                change.summary,
                f"undone by {change.undone_by}" if change.undone_by else "",
            )
            for change in changes
        ]
        print_table(["", "when", "what", ""], rows, right=[""])
    else:
        say("no change of people is in the journal")
