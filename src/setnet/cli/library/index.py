"""`setnet index`: find the faces in folders of photos."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_json, say
from setnet.cli.shared_options import (
    ClusterOption,
    JsonOption,
    LibraryOption,
    library_or_cluster,
    make_app,
)

if TYPE_CHECKING:
    from setnet.library import IndexReport, Library

app = make_app()

_SHOWN_FAILURES = 10


@app.command()
def index(
    photos: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PHOTOS",
            help="Folders (or single photos); none: those indexed before.",
            show_default=False,
        ),
    ] = None,
    library: LibraryOption = None,
    cluster: ClusterOption = None,
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
    prune: Annotated[bool, typer.Option("--prune", help="Remove photos whose files are gone.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Try files again that failed before.")] = False,
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
    """Find the faces in folders of photos and keep them in a library.

    Run it again whenever photos were added, changed or moved: only what is new is looked at. Ctrl-C stops
    it; the next run goes on from there. In the end faces are grouped by person: `setnet people discover`.

    `--redescribe --descriptor NAME` changes the descriptor of a library: its photos are read again, faces are
    not looked for again. Searches use the old descriptors until all is done.
    """
    from setnet.cli.library.index_progress import IndexProgressBar
    from setnet.faces import PRESETS
    from setnet.library import Library, default_library, existing

    existing(photos or ())  # a mistyped folder must not leave an empty library behind
    place = library_or_cluster(library, cluster) or default_library()
    options = {"detector": detector, "descriptor": descriptor, "min_face": min_face}
    chosen = {name: value for name, value in options.items() if value is not None}
    if redescribe:
        _refuse_with_redescribe(PHOTOS=photos, detector=detector, min_face=min_face, quick=quick, retry=retry)
        _redescribe(place, descriptor, workers, prune, json)
        return
    with Library.open_or_create(place, **{**(PRESETS["quick"] if quick else {}), **chosen}) as opened:
        if group_readable is not None:
            opened.set_group_readable(group_readable)
        with IndexProgressBar(silent=json) as bar:
            report = opened.index(photos, workers=workers, prune=prune, retry=retry, progress=bar.show)
        _print(report, opened, json)
    if report.interrupted:
        raise typer.Exit(130)
    if not report.ok:
        raise typer.Exit(1)


def _refuse_with_redescribe(**given: object) -> None:
    from setnet.errors import InvalidInputError

    for name, value in given.items():
        if value:
            option = name if name.isupper() else f"--{name.replace('_', '-')}"
            raise InvalidInputError(
                f"--redescribe describes the faces that the library has: leave out {option}, and index in "
                "a run of its own"
            )


def _redescribe(place: Path, descriptor: str | None, workers: int | None, prune: bool, json: bool) -> None:
    from setnet.cli.library.index_progress import IndexProgressBar
    from setnet.library import Library, shown

    with IndexProgressBar(silent=json) as bar:
        report = Library.redescribe(place, descriptor, workers=workers, prune=prune, progress=bar.show)
    if json:
        print_json(report.to_dict(shown) | {"library": shown(place)})
    else:
        typer.echo(report.summary)
        for path, reason in report.failed[:_SHOWN_FAILURES]:
            say(f"could not be read: {shown(path)}: {reason}")
        if report.failed:
            say(f"{len(report.failed):,} photos were not described: `setnet index` looks at them again")
        for person, photo in report.lost:
            say(f"lost: an example of {person} from {'nowhere' if photo is None else shown(photo)}")
        if report.lost:
            say("their photos are gone: `setnet people add NAME PHOTO...` gives new ones")
        if report.interrupted:
            say("stopped; what was described is kept, the same command goes on from here")
    if report.interrupted:
        raise typer.Exit(130)
    if not report.ok:
        raise typer.Exit(1)


def _print(report: IndexReport, library: Library, json: bool) -> None:
    from setnet.library import shown

    if json:
        print_json(report.to_dict() | {"library": shown(library.path)})
        return
    typer.echo(report.summary)
    for title, files in (("could not be read", report.failed), ("could not be entered", report.unreadable)):
        for path, reason in files[:_SHOWN_FAILURES]:
            say(f"{title}: {shown(path)}: {reason}")
        if len(files) > _SHOWN_FAILURES:
            say(f"... and {len(files) - _SHOWN_FAILURES:,} more: `setnet status` lists them")
    if report.vanished:
        say(f"{len(report.vanished):,} photos are no longer there: `setnet index --prune` removes them")
    if report.interrupted:
        say("stopped; what was found is kept, the same command goes on from here")
    unnamed = library.groups.totals(min_faces=2).unnamed
    if unnamed:
        say(f"{unnamed:,} groups of faces have no name: `setnet people discover` lists them")
    typer.echo(f"library: {shown(library.path)}")
