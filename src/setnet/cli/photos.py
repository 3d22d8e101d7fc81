"""`setnet faces` and `setnet duplicates`: the faces in a photo, and the copies of one photograph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import (
    DetectorOption,
    MinFaceOption,
    WorkersOption,
    argument,
    drop_unset,
    make_app,
    option,
)
from setnet.cli.output import files_with_reasons, first_lines, say
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import DuplicateGroup

app = make_app()


@command(app)
def faces(
    call: Call,
    photo: Annotated[str, argument("PHOTO")],
    sheet: Annotated[
        Path | None, option("Write the photo with its faces numbered, as a page.", metavar="FILE.html")
    ] = None,
    detector: DetectorOption = None,
    min_face: MinFaceOption = None,
) -> Result:
    """Show the faces found in one photo, from left to right; the number is what follows # in a search.

    The exit status is 1 when there is none.
    """
    from setnet.library.inspection import face_sheet, inspect_photo

    seen = inspect_photo(photo, call.chosen, **drop_unset(detector=detector, min_face=min_face))
    if sheet is not None:
        face_sheet(seen, sheet)
        say(f"sheet: {display_path(sheet)}")
    rows = [
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
    ]
    columns = ["#", "box", "score", "sharpness", "yaw", "pitch", "roll", "person"]
    numbers = [name for name in columns if name not in ("box", "person")]
    return Result(seen, Rows(columns, rows, f"no face found in {photo}", numbers), status=not rows)


@command(app)
def duplicates(
    call: Call,
    photos: Annotated[
        list[Path] | None,
        argument("PHOTOS", "Folders (or single photos) [default: those of the library]."),
    ] = None,
    workers: WorkersOption = None,
) -> Result:
    """Find copies of one photograph: resized, cropped, recompressed, recoloured, written on or mirrored.

    Each group has its largest photo first. Nothing is deleted or changed. The photos need not be indexed; of
    those of the library, what was computed is kept. The exit status is 1 when there are no copies, or some
    photos could not be read.
    """
    from setnet.library import find_duplicates
    from setnet.library.paths import existing_paths

    existing_paths(photos or ())
    failed: list[tuple[Path, str]] = []
    options: dict[str, Any] = {
        "workers": workers,
        "progress": call.bar.show,
        "on_failure": lambda path, reason: failed.append((path, reason)),
    }
    groups = find_duplicates(photos, **options) if photos else call.library.photos.duplicates(**options)
    call.bar.stop()
    failures = [{"photo": path, "reason": reason} for path, reason in failed]
    facts = {"groups": [group.photos for group in groups], "failed": failures}
    remarks = first_lines("could not be read:", files_with_reasons(failed))
    if groups:
        copies = sum(len(group.photos) - 1 for group in groups)
        remarks.insert(
            0, f"{pluralise(len(groups), 'group')}; {pluralise(copies, 'photo')} besides the largest of each"
        )
    return Result(facts, _duplicate_rows(groups), remarks=remarks, status=bool(failed or not groups))


def _duplicate_rows(groups: list[DuplicateGroup]) -> Rows:
    rows = [
        (number if not place else "", f"{pixels / 1e6:.2f}", display_path(path))
        for number, group in enumerate(groups, 1)
        for place, (path, pixels) in enumerate(zip(group.photos, group.pixels, strict=True))
    ]
    return Rows(["group", "megapixels", "photo"], rows, "no copies found", ["group", "megapixels"])
