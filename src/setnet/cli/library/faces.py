"""`setnet faces`: the faces found in one photo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app

app = make_app()


@app.command()
def faces(
    photo: Annotated[str, typer.Argument(metavar="PHOTO", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the photo with its faces numbered.")
    ] = None,
    detector: Annotated[
        str | None, typer.Option(metavar="MODEL", help="cascade, mtcnn or yunet [default: the library's].")
    ] = None,
    min_face: Annotated[
        int | None,
        typer.Option(metavar="PIXELS", help="Smallest face to find, in pixels [default: the library's]."),
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Show the faces found in one photo, from left to right; the number is what follows # in a search.

    The exit status is 1 when there is none.
    """
    from setnet.library import draw_faces, inspect_photo

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
