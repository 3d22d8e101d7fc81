"""`setnet searches`: list and remove saved searches."""

from __future__ import annotations

from typing import Annotated

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import argument, make_app

app = make_app()


@app.callback()
def searches() -> None:
    """List and remove saved searches: `setnet search anna ben --save Us` keeps one.

    `setnet search --saved Us` runs it, `setnet people undo` takes a change of it back.
    """


@command(app, "list")
def list_searches(call: Call) -> Result:
    """List the saved searches."""
    known = list(call.library.searches)
    rows = [
        (search.name, ", ".join(search.people), str(search.query().conditions), search.link_to or "")
        for search in known
    ]
    empty = "no search is saved: `setnet search anna ben --save NAME`"
    return Result({"searches": known}, Rows(["name", "people", "conditions", "links"], rows, empty))


@command(app)
def remove(call: Call, name: Annotated[str, argument("NAME")]) -> Result:
    """Remove a saved search; links that it made stay."""
    done = call.library.searches.remove(name)
    return Result(done, done.summary)
