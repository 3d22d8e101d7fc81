"""`setnet tags`: who is in the photos, for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_json, print_text, say, say_some
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.connect import TagsWritten

app = make_app()


@app.callback()
def tags() -> None:
    """Hand who is in the photos to other programs; `setnet people import-tags` is the way back."""


@app.command()
def write(
    people: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PERSON]...", help="Whose faces [default: everybody's].", show_default=False),
    ] = None,
    update: Annotated[
        bool,
        typer.Option("--update", help="Add to sidecars that exist; each is kept as FILE.xmp.bak beside it."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done; nothing is written.")
    ] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Write faces of saved people as MWG regions to .xmp sidecars, such as IMG_1.jpg.xmp.

    Written are faces that are confirmed, examples or sure matches. Photos are never changed, and a sidecar
    that exists is left as it is, unless --update adds to it: everything else in it stays. The exit status is
    1 if files could not be read or written.
    """
    from setnet.cli.library.stage_progress import StageProgressBar
    from setnet.connect import write_tags
    from setnet.library import display_path

    with open_library(library) as opened, StageProgressBar(silent=json) as bar:
        try:
            done = write_tags(opened, people or (), update=update, dry_run=dry_run, progress=bar.show)
        except KeyboardInterrupt:
            say("stopped; sidecars that were written stay, the same command goes on from here")
            raise typer.Exit(130) from None
    if json:
        print_json(done.to_dict(display_path))
    else:
        _print(done)
    if not done.ok:
        raise typer.Exit(1)


def _print(done: TagsWritten) -> None:
    from setnet.library import display_path

    would = "would be " if done.dry_run else ""
    print_text(
        f"{counted(done.photos, 'photo')} with named faces: {counted(done.regions.total(), 'region')} {would}"
        f"written to {counted(len(done.created), 'new sidecar')} and {len(done.updated):,} existing; "
        f"{counted(done.unchanged, 'photo')} had all names already"
    )
    if done.kept:
        kept = counted(len(done.kept), "existing sidecar")
        say(f"not changed: {kept} without these names: --update adds them")
    conflicts = [
        f"face {c.face} of {display_path(c.photo)} is {c.name}, tagged {c.owner}" for c in done.conflicts
    ]
    say_some("not written:", conflicts)
    say_some("failed:", [f"{display_path(path)}: {why}" for path, why in done.failed])
