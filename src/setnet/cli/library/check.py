"""`setnet check`: verify every stored byte."""

from __future__ import annotations

import typer

from setnet.cli.options import JsonOption, LibraryOption, make_app, open_library

app = make_app()


@app.command()
def check(library: LibraryOption = None, json: JsonOption = False) -> None:
    """Verify every stored byte of the library and that its parts agree.

    The exit status is 1 if there is a problem.
    """
    from setnet.cli.output import print_json, say

    with open_library(library) as opened:
        problems = opened.check()
    if json:
        print_json({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            typer.echo(problem)
        if not problems:
            typer.echo("the library is sound")
    if problems:
        say("`setnet repair` repairs what it can; `setnet restore BACKUP` brings a backup back")
        raise typer.Exit(1)
