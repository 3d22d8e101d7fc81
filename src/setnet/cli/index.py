"""`setnet index`: find the faces in folders of photos, once or as they change, or describe them anew."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.options import JsonOption, LibraryOption, WorkersOption, argument, make_app, option
from setnet.cli.output import ProgressBar, print_json, say, say_some
from setnet.errors import InvalidInputError, LockedError
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import IndexReport, Library

app = make_app()


@app.command()
def index(
    photos: Annotated[
        list[Path] | None,
        argument(
            "PHOTOS",
            "Folders (or single photos or videos), or addresses of them; none: those indexed before.",
        ),
    ] = None,
    library: LibraryOption = None,
    detector: Annotated[
        str | None,
        option("mtcnn (default), cascade or yunet (misses more); fixed per library.", metavar="MODEL"),
    ] = None,
    descriptor: Annotated[
        str | None, option("A descriptor model of `setnet models`; fixed per library.", metavar="MODEL")
    ] = None,
    min_face: Annotated[
        int | None, option("Smallest face to find, in pixels; fixed per library.", metavar="PIXELS")
    ] = None,
    quick: Annotated[
        bool, option("The same as --detector cascade: in half the time, nearly all faces.", "--quick")
    ] = False,
    workers: WorkersOption = None,
    prune: Annotated[
        bool,
        option(
            "Remove photos whose files are gone or excluded; asks before more than a tenth goes.", "--prune"
        ),
    ] = False,
    yes: Annotated[bool, option("Remove them without asking.", "--yes")] = False,
    retry: Annotated[bool, option("Try files again that failed before.", "--retry")] = False,
    exclude: Annotated[
        list[str] | None,
        option(
            "Leave out files and folders, such as 'private' or '*/raw/*'; may be repeated; remembered "
            "until others are given ('' for none).",
            metavar="PATTERN",
        ),
    ] = None,
    watch: Annotated[
        bool, option("Go on: index what changes, until Ctrl-C (extra `watch`).", "--watch")
    ] = False,
    redescribe: Annotated[
        bool,
        option(
            "Describe the known faces anew, by the model of --descriptor; names and corrections stay.",
            "--redescribe",
        ),
    ] = False,
    group_readable: Annotated[
        bool | None,
        option(
            "Let your group read the library's files, or nobody else (default); remembered.",
            "--group-readable/--owner-only",
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
    from setnet.faces import PRESETS
    from setnet.library import default_library
    from setnet.library.creation import library_exists
    from setnet.library.paths import existing_paths

    place = (library or default_library()).expanduser()
    if not library_exists(place):
        existing_paths(photos or ())  # a mistyped folder must not leave an empty library behind
    options = {"detector": detector, "descriptor": descriptor, "min_face": min_face}
    chosen = {name: value for name, value in options.items() if value is not None}
    if redescribe:
        _check_redescribe_options(
            PHOTOS=photos,
            detector=detector,
            min_face=min_face,
            quick=quick,
            retry=retry,
            exclude=exclude,
            watch=watch,
        )
        _redescribe(_IndexCalls(place, {}, workers, prune, yes, retry, json), descriptor)
        return
    settings = {**(PRESETS["quick"] if quick else {}), **chosen}
    run = _IndexCalls(place, settings, workers, prune, yes, retry, json)
    changes = run.changes(photos) if watch else None
    report = run.index(photos, exclude, group_readable)
    if changes is not None and not report.interrupted:
        run.follow(changes)
    if report.interrupted:
        raise typer.Exit(130)
    if not report.ok or run.has_refused:
        raise typer.Exit(1)


@dataclass
class _IndexCalls:
    """The choices of a call, for one index run or many."""

    place: Path
    settings: dict[str, Any]
    workers: int | None
    prune: bool
    yes: bool
    retry: bool
    json: bool
    has_refused: bool = False

    def index(
        self,
        photos: Sequence[Path] | None,
        exclude: Sequence[str] | None = None,
        group_readable: bool | None = None,
        is_quiet: bool = False,
    ) -> IndexReport:
        """Run once, and print what was done; a quiet run prints nothing where nothing was."""
        from setnet.library import Library

        with Library.open_or_create(self.place, **self.settings) as opened:
            if group_readable is not None:
                opened.set_group_readable(group_readable)
            with ProgressBar(silent=self.json) as bar:
                report = opened.index(
                    photos,
                    workers=self.workers,
                    prune=self.pruning(bar),
                    retry=self.retry,
                    exclude=exclude,
                    progress=bar.show_index,
                )
            if not is_quiet or report.has_changed or report.failed:
                _print_report(report, opened, self.json)
        return report

    def pruning(self, bar: ProgressBar) -> Callable[[int, int], bool] | bool:
        """Return what decides whether photos are removed: a question that takes the bar away first."""

        def may_remove(gone: int, known: int) -> bool:
            from setnet.library.folder_scan import is_few

            if self.yes or is_few(gone, known):
                return True
            bar.stop()
            question = f"{gone:,} of {known:,} photos are gone or excluded"
            if sys.stdin.isatty():
                return typer.confirm(f"{question}. Remove them from the library?", err=True)
            say(f"{question}: so many are removed with --prune --yes only; nothing was removed")
            self.has_refused = True
            return False

        return may_remove if self.prune else False

    def changes(self, photos: Sequence[Path] | None) -> Iterator[list[Path]]:
        """Return what yields the folders in which something changed, when it is iterated."""
        from setnet.library import Library
        from setnet.library.folder_watch import changed_folders

        def roots() -> Sequence[Path]:
            if photos:
                return photos
            with Library.open(self.place) as opened:
                return opened.folders

        return changed_folders(roots, self.place)

    def follow(self, changes: Iterator[list[Path]]) -> None:
        """Index what changes until Ctrl-C; while another program writes the library, later."""
        say("watching the folders; Ctrl-C ends it")
        waiting: dict[Path, None] = {}
        try:
            for folders in changes:
                is_first = not waiting
                waiting |= dict.fromkeys(folders)
                if not waiting:
                    continue
                try:
                    if self.index(list(waiting), is_quiet=True).interrupted:
                        raise KeyboardInterrupt
                except LockedError as error:
                    if is_first:
                        say(f"waiting: {error}")
                else:
                    waiting.clear()
        except KeyboardInterrupt:
            say("stopped watching")
            raise typer.Exit(130) from None


def _print_report(report: IndexReport, library: Library, json: bool) -> None:
    if json:
        print_json(report.to_dict() | {"library": display_path(library.path), "excluded": library.excluded})
        return
    typer.echo(report.summary)
    failed = [file for file in report.failed if file not in report.partial]
    lists = {
        "could not be read": failed,
        "read in part": report.partial,
        "skipped": (*report.unreadable, *report.skipped),
    }
    for title, files in lists.items():
        lines = [f"{display_path(path)}: {reason}" for path, reason in files]
        say_some(f"{title}:", lines, ": `setnet status` lists them")
    if report.vanished:
        gone = pluralise(len(report.vanished), "photo is", "photos are")
        say(f"{gone} gone or excluded: `setnet index --prune` removes what is gone")
    if library.excluded:
        say(f"left out: {', '.join(library.excluded)} (--exclude '' ends that)")
    if report.interrupted:
        say("stopped; what was found is kept, the same command goes on from here")
    unnamed = library.groups.totals(min_faces=2).unnamed
    if unnamed:
        say(
            f"{pluralise(unnamed, 'group of faces has', 'groups of faces have')} no name: "
            "`setnet people discover` lists them"
        )
    typer.echo(f"library: {display_path(library.path)}")


def _check_redescribe_options(**given: object) -> None:
    """Raise for options that have no meaning when faces are described anew."""
    for name, value in given.items():
        if value:
            option = name if name.isupper() else f"--{name.replace('_', '-')}"
            raise InvalidInputError(
                f"--redescribe describes the faces that the library has: leave out {option}, and index in "
                "a run of its own"
            )


def _redescribe(calls: _IndexCalls, descriptor: str | None) -> None:
    """Describe all faces anew, and print what was done."""
    from setnet.library import Library

    place, json = calls.place, calls.json
    with ProgressBar(silent=json) as bar:
        report = Library.reembed(
            place, descriptor, workers=calls.workers, prune=calls.pruning(bar), progress=bar.show_index
        )
    if json:
        print_json(report.to_dict(display_path) | {"library": display_path(place)})
    else:
        typer.echo(report.summary)
        say_some("could not be read:", [f"{display_path(path)}: {reason}" for path, reason in report.failed])
        if report.failed:
            say(
                f"{pluralise(len(report.failed), 'photo was', 'photos were')} not described: "
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
