"""`setnet tags write` and `setnet people import-tags`: names as face tags, to and from other programs."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from setnet.cli.command import Call, Result, command
from setnet.cli.options import DryRunOption, argument, complete_names, make_app, option
from setnet.cli.output import files_with_reasons, first_lines
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.connect import TagImport, TagsWritten

app = make_app()


@app.callback()
def tags() -> None:
    """Hand who is in the photos to other programs; `setnet people import-tags` is the way back."""


@command(app, interrupted="sidecars that were written stay, the same command continues")
def write(
    call: Call,
    people: Annotated[
        list[str] | None,
        argument("PERSON", "Whose faces [default: everybody's].", autocompletion=complete_names),
    ] = None,
    update: Annotated[
        bool, option("Add to sidecars that exist; each is kept as FILE.xmp.bak beside it.", "--update")
    ] = False,
    dry_run: DryRunOption = False,
) -> Result:
    """Write faces of saved people as MWG regions to .xmp sidecars, such as IMG_1.jpg.xmp.

    Written are faces that are confirmed, examples or sure matches. Photos are never changed, and a sidecar
    that exists is left as it is, unless --update adds to it: everything else in it stays. The exit status is
    1 if files could not be read or written.
    """
    from setnet.connect import write_tags

    done = write_tags(call.library, people or (), update=update, dry_run=dry_run, progress=call.bar.show)
    text = (
        f"{pluralise(done.photos, 'photo')} with named faces: "
        f"{pluralise(done.regions.total(), 'region')} {'would be ' if done.dry_run else ''}"
        f"written to {pluralise(len(done.created), 'new sidecar')} and {len(done.updated):,} existing; "
        f"{pluralise(done.unchanged, 'photo')} had all names already"
    )
    return Result(done, text, remarks=_write_remarks(done), status=not done.ok)


def _write_remarks(done: TagsWritten) -> list[str]:
    remarks = []
    if done.kept:
        kept = pluralise(len(done.kept), "existing sidecar")
        remarks.append(f"not changed: {kept} without these names: --update adds them")
    conflicts = [
        f"face {c.face} of {display_path(c.photo)} is {c.name}, tagged {c.owner}" for c in done.conflicts
    ]
    remarks += first_lines("not written:", conflicts)
    return remarks + first_lines("failed:", files_with_reasons(done.failed))


_MAX_NAMES = 10


def import_tags(
    call: Call,
    folders: Annotated[
        list[Path] | None,
        argument("FOLDER", "Folders or photos to look at [default: all photos of the library]."),
    ] = None,
    dry_run: DryRunOption = False,
) -> Result:
    """Name faces by what other programs wrote: face tags, Google Takeout, captions and keywords.

    Face tags are read from photos, from .xmp sidecars and from .picasa.ini. Each is matched with a face that
    the library has at that place. Names without a place are in the JSON files of Google Takeout, in XMP, and
    those of saved people in captions and keywords. Whose face is whose is found out over all photos at once;
    what fits two ways is only listed. A face that is somebody else's, or was rejected, stays as it is.
    Running it again changes nothing, and `setnet people undo` takes it back. The exit status is 1 if files
    could not be read.
    """
    from setnet.connect import import_tags

    done = import_tags(call.library, folders or (), dry_run=dry_run, progress=call.bar.show)
    what = "would get a name" if done.dry_run else "got a name"
    text = f"{pluralise(done.photos, 'photo')}, {done.tagged:,} with face tags; "
    if done.without_boxes:
        text += f"{done.without_boxes:,} with names alone; "
    text += f"{pluralise(done.named, 'face')} {what}"
    if done.people:
        text += f", of {pluralise(done.people, 'person', 'people')} ({done.new:,} new)"
    if done.known:
        text += f"; {done.known:,} had it already"
    names = [f"  {name}: {faces:,}" for name, faces in islice(done.faces.items(), _MAX_NAMES)]
    return Result(done, text, *names, remarks=_import_remarks(done), status=not done.ok)


def _import_remarks(done: TagImport) -> list[str]:
    remarks = [f"note: {hint}" for hint in done.hints]
    if done.refused:
        remarks.append(f"{done.refused:,} tagged faces were rejected for that person before, and stay so")
    places = [f"{name} in {display_path(path)}" for path, name in done.not_found]
    remarks += first_lines("no face was found at the region of", places)
    conflicts = [
        f"face {c.face} of {display_path(c.photo)} is {c.owner}, tagged {c.name}" for c in done.conflicts
    ]
    remarks += first_lines("not changed:", conflicts)
    maybe = [f"{s.name} is {display_path(s.photo)}#{s.face}" for s in done.suggestions]
    remarks += first_lines("maybe:", maybe)
    if maybe:
        remarks.append("`setnet people confirm NAME PHOTO#N` says that one is right")
    return remarks + first_lines("could not be read:", files_with_reasons(done.unreadable))
