"""`setnet faces` and `setnet duplicates`: the faces in a photo, and the copies of one photograph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.options import (
    JsonOption,
    LibraryOption,
    WorkersOption,
    argument,
    make_app,
    open_library,
    option,
)
from setnet.cli.output import ProgressBar, print_json, print_table, say, say_some
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import DuplicateGroup

app = make_app()


@app.command()
def faces(
    photo: Annotated[str, argument("PHOTO")],
    out: Annotated[Path | None, option("Draw the photo with its faces numbered.", metavar="FILE")] = None,
    detector: Annotated[
        str | None, option("cascade, mtcnn or yunet [default: the library's].", metavar="MODEL")
    ] = None,
    min_face: Annotated[
        int | None, option("Smallest face to find, in pixels [default: the library's].", metavar="PIXELS")
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Show the faces found in one photo, from left to right; the number is what follows # in a search.

    The exit status is 1 when there is none.
    """
    from setnet.library.inspection import draw_faces, inspect_photo

    chosen = {"detector": detector, "min_face": min_face}
    seen = inspect_photo(photo, library, **{k: v for k, v in chosen.items() if v is not None})
    if out is not None:
        draw_faces(seen, out)
        say(f"drawn: {out}")
    if json:
        print_json(seen.to_dict())
    elif seen.faces:
        print_table(
            ["#", "box", "score", "sharpness", "yaw", "pitch", "roll", "person"],
            [
                (
                    number,
                    f"{face.box.x0:.0f},{face.box.y0:.0f} {face.box.width:.0f}x{face.box.height:.0f}",
                    f"{face.score:.3f}",
                    f"{face.quality.sharpness:.2f}",
                    f"{face.quality.yaw:.0f}",
                    f"{face.quality.pitch:.0f}",
                    f"{face.quality.roll:.0f}",
                    f"{who.name} {who.similarity:.2f}" if who.name else "",
                )
                for number, (face, who) in enumerate(zip(seen.faces, seen.names, strict=True), 1)
            ],
            right=["#", "score", "sharpness", "yaw", "pitch", "roll"],
        )
    else:
        say(f"no face found in {photo}")
    if not seen.faces:
        raise typer.Exit(1)


@app.command()
def duplicates(
    photos: Annotated[
        list[Path] | None, argument("PHOTOS", "Folders (or single photos); none: those of the library.")
    ] = None,
    sheet: Annotated[
        Path | None, option("Also draw the groups: out.png or out.html.", metavar="FILE")
    ] = None,
    workers: WorkersOption = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Find copies of one photograph: resized, cropped, recompressed, recoloured, written on or mirrored.

    Each group has its largest photo first. Nothing is deleted or changed. The photos need not be indexed; of
    those of the library, what was computed is kept. The exit status is 1 when there are no copies, or some
    photos could not be read.
    """
    from setnet.library import duplicate_sheet, find_duplicates
    from setnet.library.paths import existing_paths
    from setnet.library.sheets import check_sheet_path

    existing_paths(photos or ())
    if sheet is not None:
        check_sheet_path(sheet)  # now, and not after an hour of work
    failed: list[tuple[Path, str]] = []
    with ProgressBar(silent=json) as bar:
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
    _print_duplicates(groups, json)
    say_some("could not be read:", [f"{display_path(path)}: {reason}" for path, reason in failed], hint="")
    if failed or not groups:
        raise typer.Exit(1)


def _print_duplicates(groups: list[DuplicateGroup], json: bool) -> None:
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
        say(f"{pluralise(len(groups), 'group')}; {pluralise(copies, 'photo')} besides the largest of each")
