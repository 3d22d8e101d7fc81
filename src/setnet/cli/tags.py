"""`setnet tags write` and `setnet people import-tags`: names as face tags, to and from other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.options import JsonOption, LibraryOption, argument, make_app, open_library, option
from setnet.cli.output import ProgressBar, print_json, print_text, say, say_some
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.connect import TagImport, TagsWritten

app = make_app()


@app.callback()
def tags() -> None:
    """Hand who is in the photos to other programs; `setnet people import-tags` is the way back."""


@app.command()
def write(
    people: Annotated[
        list[str] | None, argument("[PERSON]...", "Whose faces [default: everybody's].")
    ] = None,
    update: Annotated[
        bool, option("Add to sidecars that exist; each is kept as FILE.xmp.bak beside it.", "--update")
    ] = False,
    dry_run: Annotated[bool, option("Only say what would be done; nothing is written.", "--dry-run")] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Write faces of saved people as MWG regions to .xmp sidecars, such as IMG_1.jpg.xmp.

    Written are faces that are confirmed, examples or sure matches. Photos are never changed, and a sidecar
    that exists is left as it is, unless --update adds to it: everything else in it stays. The exit status is
    1 if files could not be read or written.
    """
    from setnet.connect import write_tags

    with open_library(library) as opened, ProgressBar(silent=json) as bar:
        try:
            done = write_tags(opened, people or (), update=update, dry_run=dry_run, progress=bar.show)
        except KeyboardInterrupt:
            say("stopped; sidecars that were written stay, the same command goes on from here")
            raise typer.Exit(130) from None
    if json:
        print_json(done.to_dict(display_path))
    else:
        _print_written(done)
    if not done.ok:
        raise typer.Exit(1)


def _print_written(done: TagsWritten) -> None:
    would = "would be " if done.dry_run else ""
    print_text(
        f"{pluralise(done.photos, 'photo')} with named faces: "
        f"{pluralise(done.regions.total(), 'region')} {would}"
        f"written to {pluralise(len(done.created), 'new sidecar')} and {len(done.updated):,} existing; "
        f"{pluralise(done.unchanged, 'photo')} had all names already"
    )
    if done.kept:
        kept = pluralise(len(done.kept), "existing sidecar")
        say(f"not changed: {kept} without these names: --update adds them")
    conflicts = [
        f"face {c.face} of {display_path(c.photo)} is {c.name}, tagged {c.owner}" for c in done.conflicts
    ]
    say_some("not written:", conflicts)
    say_some("failed:", [f"{display_path(path)}: {why}" for path, why in done.failed])


_MOST_NAMES = 10


def import_tags(
    folders: Annotated[
        list[Path] | None,
        argument("[FOLDER]...", "Folders or photos to look at [default: all photos of the library]."),
    ] = None,
    dry_run: Annotated[bool, option("Only say what would be done; nothing is changed.", "--dry-run")] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Name faces by the face tags that other programs wrote: Lightroom, digiKam, Picasa, Windows, ACDSee.

    Tags are read from photos, from .xmp sidecars and from .picasa.ini. Each is matched with a face that the
    library has at that place. A face that is somebody else's, or was refused, stays as it is. Running it
    again changes nothing, and `setnet people undo` takes it back. The exit status is 1 if files could not be
    read.
    """
    from setnet.connect import import_tags

    with open_library(library) as opened, ProgressBar(silent=json) as bar:
        try:
            done = import_tags(opened, folders or (), dry_run=dry_run, progress=bar.show)
        except KeyboardInterrupt:
            say("stopped; nothing was changed")
            raise typer.Exit(130) from None
    if json:
        print_json(done.to_dict(display_path))
    else:
        _print_import(done)
    if not done.ok:
        raise typer.Exit(1)


def _print_import(done: TagImport) -> None:
    what = "would get a name" if done.dry_run else "got a name"
    text = f"{pluralise(done.photos, 'photo')}, {done.tagged:,} with face tags: "
    text += f"{pluralise(done.named, 'face')} {what}"
    if done.people:
        text += f", of {pluralise(done.people, 'person', 'people')} ({done.new:,} new)"
    if done.known:
        text += f"; {done.known:,} had it already"
    print_text(text)
    for name, faces in list(done.faces.items())[:_MOST_NAMES]:
        print_text(f"  {name}: {faces:,}")
    if done.refused:
        say(f"{done.refused:,} tagged faces were refused for that person before, and stay so")
    say_some(
        "no face was found at the region of", [f"{name} in {display_path(p)}" for p, name in done.not_found]
    )
    say_some(
        "not changed:",
        [f"face {c.face} of {display_path(c.photo)} is {c.owner}, tagged {c.name}" for c in done.conflicts],
    )
    say_some("could not be read:", [f"{display_path(path)}: {why}" for path, why in done.unreadable])
