"""`setnet duplicates`: copies of one photograph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.library import DuplicateGroup

app = make_app()

_SHOWN_FAILURES = 10


@app.command()
def duplicates(
    photos: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PHOTOS",
            help="Folders (or single photos); none: those of the library.",
            show_default=False,
        ),
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the groups: out.png or out.html.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, max=256, metavar="N", help="Worker processes [default: one per core]."),
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Find copies of one photograph: resized, cropped, recompressed, recoloured, written on or mirrored.

    Each group has its largest photo first. Nothing is deleted or changed. The photos need not be indexed; of
    those of the library, what was computed is kept. The exit status is 1 when there are no copies, or some
    photos could not be read.
    """
    from setnet.cli.library.stage_progress import StageProgressBar
    from setnet.library import (
        check_sheet_path,
        display_path,
        duplicate_sheet,
        existing_paths,
        find_duplicates,
    )

    existing_paths(photos or ())
    if sheet is not None:
        check_sheet_path(sheet)  # now, and not after an hour of work
    failed: list[tuple[Path, str]] = []
    with StageProgressBar(silent=json) as bar:
        options: dict[str, Any] = {
            "workers": workers,
            "progress": bar.show,
            "on_failure": lambda path, reason: failed.append((path, reason)),
        }
        if photos:
            groups = find_duplicates(photos, **options)
        else:
            with open_library(library) as opened:
                groups = opened.duplicates(**options)
    if sheet is not None:
        duplicate_sheet(groups, sheet)
        say(f"sheet: {display_path(sheet)}")
    _print(groups, json)
    for path, reason in failed[:_SHOWN_FAILURES]:
        say(f"could not be read: {display_path(path)}: {reason}")
    if len(failed) > _SHOWN_FAILURES:
        say(f"... and {len(failed) - _SHOWN_FAILURES:,} more")
    if failed or not groups:
        raise typer.Exit(1)


def _print(groups: list[DuplicateGroup], json: bool) -> None:
    from setnet.library import display_path

    if json:
        print_json({"groups": [[str(path) for path in group.photos] for group in groups]})
    elif not groups:
        say("no copies found")
    else:
        rows = [
            (number if not place else "", f"{pixels / 1e6:.2f}", display_path(path))
            for number, group in enumerate(groups, 1)
            for place, (path, pixels) in enumerate(zip(group.photos, group.pixels, strict=True))
        ]
        print_table(["group", "megapixels", "photo"], rows, right=["group", "megapixels"])
        copies = sum(len(group.photos) - 1 for group in groups)
        say(f"{counted(len(groups), 'group')}; {counted(copies, 'photo')} besides the largest of each")
