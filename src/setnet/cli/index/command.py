"""`setnet index`: find the faces in folders of photos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.shared_options import JsonOption, LibraryOption, make_app

app = make_app()


@app.command()
def index(
    photos: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PHOTOS",
            help="Folders (or single photos or videos), or addresses of them; none: those indexed before.",
            show_default=False,
        ),
    ] = None,
    library: LibraryOption = None,
    detector: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="mtcnn (default), cascade or yunet (misses more); fixed per library."
        ),
    ] = None,
    descriptor: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="A descriptor model of `setnet models`; fixed per library."),
    ] = None,
    min_face: Annotated[
        int | None,
        typer.Option(metavar="PIXELS", help="Smallest face to find, in pixels; fixed per library."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="The same as --detector cascade: in half the time, nearly all faces."),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=0, max=256, metavar="N", help="Worker processes [default: one per core]."),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Remove photos whose files are gone or excluded; asks before more than a tenth goes.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them without asking.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Try files again that failed before.")] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Leave out files and folders, such as 'private' or '*/raw/*'; may be repeated; remembered "
            "until others are given ('' for none).",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on: index what changes, until Ctrl-C (extra `watch`).")
    ] = False,
    redescribe: Annotated[
        bool,
        typer.Option(
            "--redescribe",
            help="Describe the known faces anew, by the model of --descriptor; names and corrections stay.",
        ),
    ] = False,
    group_readable: Annotated[
        bool | None,
        typer.Option(
            "--group-readable/--owner-only",
            help="Let your group read the library's files, or nobody else (default); remembered.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find the faces in folders of photos and videos and keep them in a library.

    Run it again whenever photos were added, changed or moved: only what is new is looked at. Ctrl-C stops
    it; the next run goes on from there. In the end faces are grouped by person: `setnet people discover`.

    `--redescribe --descriptor NAME` changes the descriptor of a library: its photos are read again, faces are
    not looked for again. Searches use the old descriptors until all is done.
    """
    from setnet.cli.index.index_calls import IndexCalls
    from setnet.cli.index.redescription import redescribe_library, refuse_other_options
    from setnet.faces import PRESETS
    from setnet.library import default_library, existing_paths, library_exists

    place = (library or default_library()).expanduser()
    if not library_exists(place):
        existing_paths(photos or ())  # a mistyped folder must not leave an empty library behind
    options = {"detector": detector, "descriptor": descriptor, "min_face": min_face}
    chosen = {name: value for name, value in options.items() if value is not None}
    if redescribe:
        refuse_other_options(
            PHOTOS=photos,
            detector=detector,
            min_face=min_face,
            quick=quick,
            retry=retry,
            exclude=exclude,
            watch=watch,
        )
        redescribe_library(IndexCalls(place, {}, workers, prune, yes, retry, json), descriptor)
        return
    settings = {**(PRESETS["quick"] if quick else {}), **chosen}
    run = IndexCalls(place, settings, workers, prune, yes, retry, json)
    changes = run.changes(photos) if watch else None
    report = run.index(photos, exclude, group_readable)
    if changes is not None and not report.interrupted:
        run.follow(changes)
    if report.interrupted:
        raise typer.Exit(130)
    if not report.ok or run.has_refused:
        raise typer.Exit(1)
