"""Index runs as a command makes them: with a progress bar, questions and a printed report."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from setnet.cli.output import print_json, say
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.library import IndexReport, Library

_SHOWN_FAILURES = 10


@dataclass
class IndexCalls:
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
        from setnet.cli.library.index_progress import IndexProgressBar
        from setnet.library import Library

        with Library.open_or_create(self.place, **self.settings) as opened:
            if group_readable is not None:
                opened.set_group_readable(group_readable)
            with IndexProgressBar(silent=self.json) as bar:

                def agrees(gone: int, known: int) -> bool:
                    bar.stop()
                    return self.agrees(gone, known)

                report = opened.index(
                    photos,
                    workers=self.workers,
                    prune=agrees if self.prune else False,
                    retry=self.retry,
                    exclude=exclude,
                    progress=bar.show,
                )
            if not is_quiet or report.has_changed or report.failed:
                _print(report, opened, self.json)
        return report

    def agrees(self, gone: int, known: int) -> bool:
        """Return whether so many of the known photos may be removed."""
        from setnet.library import is_few

        if self.yes or is_few(gone, known):
            return True
        question = f"{gone:,} of {known:,} photos are gone or excluded"
        if sys.stdin.isatty():
            return typer.confirm(f"{question}. Remove them from the library?", err=True)
        say(f"{question}: so many are removed with --prune --yes only; nothing was removed")
        self.has_refused = True
        return False

    def changes(self, photos: Sequence[Path] | None) -> Iterator[list[Path]]:
        """Return what yields the folders in which something changed, when it is iterated."""
        from setnet.library import Library, changed_folders

        def roots() -> Sequence[Path]:
            if photos:
                return photos
            with Library.open(self.place) as opened:
                return opened.folders

        return changed_folders(roots, self.place)

    def follow(self, changes: Iterator[list[Path]]) -> None:
        """Index what changes until Ctrl-C; while another program writes the library, later."""
        from setnet.errors import LockedError

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


def _print(report: IndexReport, library: Library, json: bool) -> None:
    from setnet.library import display_path

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
        for path, reason in files[:_SHOWN_FAILURES]:
            say(f"{title}: {display_path(path)}: {reason}")
        if len(files) > _SHOWN_FAILURES:
            say(f"... and {len(files) - _SHOWN_FAILURES:,} more: `setnet status` lists them")
    if report.vanished:
        gone = counted(len(report.vanished), "photo is", "photos are")
        say(f"{gone} gone or excluded: `setnet index --prune` removes what is gone")
    if library.excluded:
        say(f"left out: {', '.join(library.excluded)} (--exclude '' ends that)")
    if report.interrupted:
        say("stopped; what was found is kept, the same command goes on from here")
    unnamed = library.groups.totals(min_faces=2).unnamed
    if unnamed:
        say(
            f"{counted(unnamed, 'group of faces has', 'groups of faces have')} no name: "
            "`setnet people discover` lists them"
        )
    typer.echo(f"library: {display_path(library.path)}")
