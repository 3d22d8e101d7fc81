"""`setnet index --redescribe`: describe the faces of a library anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from setnet.cli.output import print_json, say
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.cli.index.index_calls import IndexCalls

_SHOWN_FAILURES = 10


def refuse_other_options(**given: object) -> None:
    """Raise for options that have no meaning when faces are described anew."""
    from setnet.errors import InvalidInputError

    for name, value in given.items():
        if value:
            option = name if name.isupper() else f"--{name.replace('_', '-')}"
            raise InvalidInputError(
                f"--redescribe describes the faces that the library has: leave out {option}, and index in "
                "a run of its own"
            )


def redescribe_library(calls: IndexCalls, descriptor: str | None) -> None:
    """Describe all faces anew, and print what was done."""
    from setnet.cli.library.index_progress import IndexProgressBar
    from setnet.library import Library, display_path

    place, json = calls.place, calls.json
    with IndexProgressBar(silent=json) as bar:

        def agrees(gone: int, known: int) -> bool:
            bar.stop()
            return calls.agrees(gone, known)

        prune = agrees if calls.prune else False
        report = Library.redescribe(place, descriptor, workers=calls.workers, prune=prune, progress=bar.show)
    if json:
        print_json(report.to_dict(display_path) | {"library": display_path(place)})
    else:
        typer.echo(report.summary)
        for path, reason in report.failed[:_SHOWN_FAILURES]:
            say(f"could not be read: {display_path(path)}: {reason}")
        if report.failed:
            say(
                f"{counted(len(report.failed), 'photo was', 'photos were')} not described: "
                "`setnet index` looks again"
            )
        for person, photo in report.lost:
            say(f"lost: an example of {person} from {'nowhere' if photo is None else display_path(photo)}")
        if report.lost:
            say("their photos are gone: `setnet people add NAME PHOTO...` gives new ones")
        if report.interrupted:
            say("stopped; what was described is kept, the same command goes on from here")
    if report.interrupted:
        raise typer.Exit(130)
    if not report.ok:
        raise typer.Exit(1)
