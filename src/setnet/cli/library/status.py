"""`setnet status`: what is in the library."""

from __future__ import annotations

from typing import Annotated

import typer

from setnet.cli.output import print_facts, print_json, print_table
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

app = make_app()


@app.command()
def status(
    failures: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many unreadable files to list.")
    ] = 20,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Show what is in the library, what it costs on disk, and which files could not be read, and why."""
    from setnet.library import display_path

    with open_library(library) as opened:
        now = opened.status()
    if json:
        print_json(now.to_dict())
        return
    counts = now.counts
    rows = [
        ("library", display_path(now.path)),
        ("photos", f"{counts.photos:,} ({counts.without_faces:,} without a face)"),
        ("faces", f"{counts.faces:,}"),
        ("people", f"{counts.people:,}"),
        ("folders", ", ".join(map(display_path, now.folders)) or "-"),
        ("detector", f"{now.settings.detector}, faces of {now.settings.min_face:g} pixels and more"),
        ("descriptor", f"{now.settings.descriptor} ({now.dim}-D)"),
        ("set vectors", now.set_vectors),
        ("calibration", "fitted to this library" if now.calibrated else "of the descriptor model"),
        ("on disk", f"{now.bytes / 1e6:,.1f} MB"),
    ]
    if counts.shots:
        rows.insert(2, ("of them", f"{counted(counts.shots, 'shot')} of videos"))
    if counts.unfinished:
        rows.append(
            (
                "unfinished",
                f"{counted(counts.unfinished, 'photo')}: the next `setnet index` completes what is missing",
            )
        )
    if counts.failed:
        rows.append(("not readable", f"{counted(counts.failed, 'file')}: `setnet index --retry` tries again"))
    print_facts(rows)
    if counts.failed and failures:
        print_table(
            ["not readable", "why"],
            [(display_path(failed.path), failed.reason) for failed in now.failures[:failures]],
        )
        if counts.failed > failures:
            typer.echo(f"... and {counts.failed - failures:,} more (--failures N shows more)")
