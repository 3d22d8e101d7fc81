"""`setnet export`: the library's descriptors as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.output import print_either
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

app = make_app()


@app.command()
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE.npz", show_default=False)],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Write the library's descriptors: descriptors, labels (of saved people), counts and paths of photos."""
    from setnet.library import display_path

    with open_library(library) as opened:
        written = opened.export(file)
    descriptors, photos = counted(written.faces, "descriptor"), counted(written.photos, "photo")
    text = f"{descriptors} of {photos}, {written.labelled:,} labelled"
    print_either({"file": str(file)} | written.to_dict(), f"{display_path(file)}: {text}", json)
