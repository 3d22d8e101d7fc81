"""`setnet index`: find the faces in folders of photos, once or as they change, or describe them again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.command import Call, Result, command
from setnet.cli.options import (
    DescriptorOption,
    DetectorOption,
    MinFaceOption,
    WorkersOption,
    argument,
    check_left_out,
    drop_unset,
    make_app,
    option,
)
from setnet.cli.output import ProgressBar, files_with_reasons, first_lines, say
from setnet.errors import InvalidInputError, LockedError
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import IndexReport, Library

app = make_app()


@command(app)
def index(
    call: Call,
    photos: Annotated[
        list[Path] | None,
        argument(
            "PHOTOS",
            "Folders (or single photos or videos), or addresses of them [default: those indexed before].",
        ),
    ] = None,
    detector: DetectorOption = None,
    descriptor: DescriptorOption = None,
    min_face: MinFaceOption = None,
    quick: Annotated[
        bool, option("The same as --detector cascade: in half the time, nearly all faces.", "--quick")
    ] = False,
    bytes_per_photo: Annotated[
        int | None,
        option(
            "Keep the descriptors of all faces of a photo in N bytes, instead of about 500 bytes a face and "
            "a set vector of 512. A library or collection that exists keeps what it was made with.",
            "--bytes-per-photo",
            min=16,
            metavar="N",
        ),
    ] = None,
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
    reembed: Annotated[
        bool,
        option(
            "Describe the known faces again, by the model of --descriptor; names and corrections stay.",
            "--reembed",
        ),
    ] = False,
    to: Annotated[
        str | None,
        option(
            "Put what is found into a collection instead of a library: a folder or an address, which many "
            "machines write (extra `collection`).",
            metavar="COLLECTION",
        ),
    ] = None,
    part: Annotated[
        str | None,
        option("With --to: look at the i-th of n parts of the files only, such as 2/8.", metavar="I/N"),
    ] = None,
    dask: Annotated[
        str | None,
        option("With --to: let a Dask cluster do all parts (extra `dask`).", metavar="ADDRESS"),
    ] = None,
    collection: Annotated[
        str | None,
        option(
            "Bring the library up to date with a collection; no photo is read.",
            "--from",
            metavar="COLLECTION",
        ),
    ] = None,
) -> None:
    """Find the faces in folders of photos and videos and keep them in a library.

    Run it again whenever photos were added, changed or moved: only what is new is looked at. Ctrl-C stops
    it; the next run continues. In the end faces are grouped by person: `setnet people discover`. Detector,
    descriptor and smallest face are fixed when a library is made.

    Many machines share the work with `--to COLLECTION --part I/N`, each with another part.

    `--reembed --descriptor NAME` changes the descriptor of a library: its photos are read again, faces are
    not looked for again. Searches use the old descriptors until all is done.
    """
    from setnet.faces import PRESETS
    from setnet.library.creation import library_exists
    from setnet.library.paths import existing_paths

    settings = PRESETS["quick"] if quick else {}
    faces = drop_unset(detector=detector, descriptor=descriptor, min_face=min_face)
    settings = {**settings, **faces, **drop_unset(bytes_per_photo=bytes_per_photo)}
    run = _Runs(call.place, settings, workers, prune, yes, retry, call.json)
    if to is not None:
        check_left_out(
            "--to fills a collection and no library",
            **{"from": collection},
            library=call.chosen,
            reembed=reembed,
            watch=watch,
        )
        report = run.index_into(to, photos or [], part, dask, exclude)
    elif collection is not None:
        check_left_out(
            "--from reads no photos",
            PHOTOS=photos, reembed=reembed, watch=watch, retry=retry, exclude=exclude, part=part, dask=dask,
        )  # fmt: skip
        report = run.adopt(collection)
    else:
        check_left_out("without --to a whole library is indexed", part=part, dask=dask)
        if not library_exists(call.place):  # a mistyped call must not leave an empty library behind
            if not photos:
                raise InvalidInputError(
                    "there is no library yet: name a folder, as in `setnet index ~/Photos`"
                )
            existing_paths(photos)
        if reembed:
            check_left_out(
                "--reembed describes the faces that the library has, and you index in a run of its own",
                PHOTOS=photos, detector=detector, min_face=min_face, quick=quick, retry=retry,
                exclude=exclude, watch=watch, bytes_per_photo=bytes_per_photo,
            )  # fmt: skip
            run.reembed(descriptor)
            return
        changes = run.changes(photos) if watch else None
        report = run.index(photos, exclude)
        if changes is not None and not report.interrupted:
            run.follow(changes)
    if report.interrupted:
        raise typer.Exit(130)
    if not report.ok or run.has_declined:
        raise typer.Exit(1)


@dataclass
class _Runs:
    """The choices of a call, for one index run or many."""

    place: Path
    settings: dict[str, Any]
    workers: int | None
    prune: bool
    yes: bool
    retry: bool
    json: bool
    has_declined: bool = False

    def index(
        self,
        photos: Sequence[Path] | None,
        exclude: Sequence[str] | None = None,
        is_quiet: bool = False,
    ) -> IndexReport:
        """Run once, and print what was done; a quiet run prints nothing where nothing was."""
        from setnet.library import Library

        with Library.open_or_create(self.place, **self.settings) as opened:
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
                _describe_report(report, opened).print(self.json)
        return report

    def index_into(
        self,
        to: str,
        photos: Sequence[Path],
        part: str | None,
        dask: str | None,
        exclude: Sequence[str] | None,
    ) -> IndexReport:
        """Find the faces of a part of the photos for a collection, and print what was done."""
        from setnet.engine.manifest import parse_part
        from setnet.library.collection import index_into, index_with_dask

        if not photos:
            raise InvalidInputError(
                "name the photos, as in `setnet index s3://bucket/photos --to s3://bucket/faces`"
            )
        options = {**self.settings, "retry": self.retry, "exclude": exclude or ()}
        if dask is not None:
            check_left_out("--dask computes all parts", part=part, workers=self.workers)
            if self.prune and not self.yes:
                raise InvalidInputError("nobody can be asked with --dask: --prune needs --yes")
            report = index_with_dask(dask, to, photos, prune=self.prune, **options)
        else:
            share = parse_part(part or "1/1")
            with ProgressBar(silent=self.json) as bar:
                report = index_into(
                    to,
                    photos,
                    share,
                    workers=self.workers,
                    prune=self.pruning(bar),
                    progress=bar.show_index,
                    **options,
                )
        where = f"collection: {display_path(to)}" + (f", part {part}" if part else "")
        facts = report.to_dict() | {"collection": display_path(to), "part": part}
        Result(facts, report.summary, where, remarks=_remarks(report)).print(self.json)
        return report

    def adopt(self, collection: str) -> IndexReport:
        """Bring the library up to date with a collection, and print what was done."""
        from setnet.library import Library
        from setnet.library.collection import CollectedPhotos
        from setnet.library.creation import library_exists

        collected = CollectedPhotos(collection)
        chosen = collected.settings.to_dict() | self.settings
        if not library_exists(self.place):
            chosen.setdefault("bytes_per_photo", collected.bytes_per_photo or None)
        with (
            Library.open_or_create(self.place, **chosen) as opened,
            ProgressBar(silent=self.json) as bar,
        ):
            report = opened.index(collection=collection, prune=self.pruning(bar), progress=bar.show_index)
            bar.stop()
            _describe_report(report, opened).print(self.json)
        return report

    def reembed(self, descriptor: str | None) -> None:
        """Describe all faces again, and print what was done."""
        from setnet.library import Library

        with ProgressBar(silent=self.json) as bar:
            report = Library.reembed(
                self.place,
                descriptor,
                workers=self.workers,
                prune=self.pruning(bar),
                progress=bar.show_index,
            )
        remarks = _remarks(report)
        if report.failed:
            remarks.append("what could not be read was not described: `setnet index` looks at it again")
        for person, photo in report.lost:
            source = "nowhere" if photo is None else display_path(photo)
            remarks.append(f"lost: an example of {person} from {source}")
        if report.lost:
            remarks.append("their photos are gone: `setnet people add NAME PHOTO...` gives new ones")
        lost = [{"person": person, "photo": photo and str(photo)} for person, photo in report.lost]
        facts = report.to_dict() | {"library": display_path(self.place), "lost": lost}
        status = 130 if report.interrupted else not report.ok
        Result(facts, report.summary, remarks=remarks, status=status).print(self.json)

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
            self.has_declined = True
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


def _remarks(report: IndexReport) -> list[str]:
    remarks = first_lines(
        "could not be read:", files_with_reasons(report.failed), "`setnet status` lists them"
    )
    remarks += first_lines(
        "skipped:",
        files_with_reasons((*report.unreadable, *report.skipped)),
        "`setnet status` lists them",
    )
    if report.vanished:
        gone = pluralise(len(report.vanished), "photo is", "photos are")
        remarks.append(f"{gone} gone or excluded: `setnet index --prune` removes what is gone")
    if report.excluded:
        remarks.append(f"left out: {', '.join(report.excluded)} (--exclude '' ends that)")
    if report.interrupted:
        remarks.append("stopped; what was found is kept, the same command continues")
    return remarks


def _describe_report(report: IndexReport, library: Library) -> Result:
    remarks = _remarks(report)
    if unnamed := library.groups.totals(min_faces=2).unnamed:
        groups = pluralise(unnamed, "group of faces has", "groups of faces have")
        remarks.append(f"{groups} no name: `setnet people discover` lists them")
    place = display_path(library.path)
    facts = report.to_dict() | {"library": place}
    return Result(facts, report.summary, f"library: {place}", remarks=remarks)
