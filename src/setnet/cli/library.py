"""Looking after a library: `setnet status`, `check`, `repair`, `backup`, `restore` and `forget`."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import LimitOption, YesOption, argument, complete_names, make_app, option, require_yes
from setnet.errors import InvalidInputError, SetNetError
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library import LibraryStatus

app = make_app()


@command(app)
def status(call: Call, limit: LimitOption = 20) -> Result:
    """Show what is in the library, what it costs on disk, and which files could not be read, and why."""
    from setnet.engine import kernel_level

    now = call.library.status()
    counts = now.counts
    rows = [
        ("library", display_path(now.path)),
        ("photos", f"{counts.photos:,} ({counts.without_faces:,} without a face)"),
        ("faces", f"{counts.faces:,}"),
        ("people", f"{counts.people:,}"),
        ("folders", ", ".join(map(display_path, now.folders)) or "-"),
        ("detector", f"{now.settings.detector}, faces of {now.settings.min_face:g} pixels and more"),
        ("descriptor", f"{now.settings.descriptor} ({now.dim}-D)"),
        ("kept as", _describe_storage(now)),
        ("on disk", f"{now.bytes / 1e6:,.1f} MB"),
        ("kernels", kernel_level()),
        ("networks", _describe_providers(now.settings)),
    ]
    if counts.shots:
        rows.insert(2, ("of them", f"{pluralise(counts.shots, 'shot')} of videos"))
    if counts.unfinished:
        photos = pluralise(counts.unfinished, "photo")
        rows.append(("unfinished", f"{photos}: the next `setnet index` completes what is missing"))
    if counts.failed:
        files = pluralise(counts.failed, "file")
        rows.append(("not readable", f"{files}: `setnet index --retry` tries again"))
    failures = [(display_path(failed.path), failed.reason) for failed in now.failures[:limit]]
    more = counts.failed - len(failures)
    remarks = [f"... and {more:,} more (--limit N shows more)"] if more > 0 else []
    return Result(now, Rows(["", ""], rows), Rows(["not readable", "why"], failures), remarks=remarks)


def _describe_storage(now: LibraryStatus) -> str:
    if not now.bytes_per_photo:
        return f"floats, with set vectors by {now.set_vectors}"
    more = f" ({pluralise(now.crowded, 'crowded photo')} take more)" if now.crowded else ""
    return f"codes of {now.bytes_per_photo:,} bytes for the faces of a photo{more}"


def _describe_providers(settings: FaceSettings) -> str:
    """Return what runs the networks; of another provider than the CPU, after it passed the self-test."""
    if not os.environ.get("SETNET_PROVIDERS"):
        return "CPU"
    from setnet.faces.sessions import chosen_providers, load_descriptor, load_detector

    try:
        load_detector(settings.detector)
        load_descriptor(settings.descriptor)
        return f"{', '.join(chosen_providers())}: the same answers as the CPU's"
    except SetNetError as error:
        return str(error)


@command(app)
def check(call: Call) -> Result:
    """Verify every stored byte of the library and that its parts agree.

    The exit status is 1 if there is a problem.
    """
    problems = call.library.check()
    remedy = "`setnet repair` repairs what it can; `setnet restore BACKUP` brings a backup back"
    return Result(
        {"ok": not problems, "problems": problems},
        *(problems or ["the library is sound"]),
        remarks=[remedy] if problems else [],
        status=bool(problems),
    )


@command(app)
def repair(call: Call) -> Result:
    """Repair a damaged library in place, and tell what could not be saved.

    Nothing is changed until the repaired state is complete; the damaged files are kept in its folder
    `quarantine` until something is forgotten, or for a week. The exit status is 1 if something is lost.
    """
    from setnet.library import Library

    done = Library.repair(call.place)
    people = pluralise(done.people, "person", "people")
    remarks = [f"lost: {text}" for text in done.lost]
    if done.to_read:
        folders = " ".join(("setnet index", *done.folders[:20]))
        photos = pluralise(done.to_read, "photo is", "photos are")
        remarks.append(f"{photos} to be read again: run `{folders}`")
    text = f"the library has {pluralise(done.photos, 'photo')} and {people}"
    return Result(done, text, remarks=remarks, status=bool(done.lost))


@command(app)
def backup(
    call: Call, dest: Annotated[Path, argument("DEST", "A new or empty folder, or an earlier backup.")]
) -> Result:
    """Copy the library, as it is at one moment, to another folder; it may be searched and indexed meanwhile.

    A second backup to the same folder copies what is new. A backup is a library: `--library DEST` opens it,
    `setnet restore DEST` brings it back. What is forgotten later stays in the backup until the next one.
    """
    done = call.library.backup(dest)
    people = pluralise(done.people, "person", "people")
    text = f"{pluralise(done.photos, 'photo')} and {people}, {done.copied_bytes / 1e6:,.1f} MB copied"
    return Result({"backup": dest} | asdict(done), f"{display_path(dest)}: {text}")


@command(app)
def restore(
    call: Call,
    backup: Annotated[Path, argument("BACKUP")],
    replace: Annotated[
        bool, option("Replace the library that is there, once the new one is complete.", "--replace")
    ] = False,
) -> Result:
    """Verify a backup and copy it to where it is used as the library."""
    from setnet.library import Library

    done = Library.restore(backup, call.place, replace)
    people = pluralise(done.people, "person", "people")
    text = f"{display_path(call.place)}: {pluralise(done.photos, 'photo')} and {people}"
    return Result({"library": call.place} | asdict(done), text)


@command(app)
def forget(
    call: Call,
    paths: Annotated[list[Path] | None, argument("PATH", "Photos or folders to forget.")] = None,
    person: Annotated[
        str | None,
        option(
            "Forget a person: name, examples, group, and their faces in photos.",
            metavar="NAME",
            autocompletion=complete_names,
        ),
    ] = None,
    everything: Annotated[
        bool, option("Delete the whole library: faces, people, thumbnails.", "--everything")
    ] = False,
    yes: YesOption = False,
) -> Result:
    """Delete the library's data about photos, a person, or everything, for good. The photos themselves stay.

    Descriptors are removed from every file of the library, not only marked as deleted, and from the examples
    of saved people. A photo that lies in an indexed folder comes back with the next `setnet index` of it; a
    person's faces do not.
    """
    if bool(paths) + everything + (person is not None) != 1:
        raise InvalidInputError("say what to forget: photos or folders, --person NAME, or --everything")
    library = call.library
    if person is not None:
        known = library.people.get(person)
        sure = pluralise(library.people.photos(known).sure, "photo")
        what = f"{known.name}, and the faces in {sure} that are surely theirs,"
    elif everything:
        counts, where = library.photos.counts(), display_path(library.path)
        what = f"all {counts.photos:,} photos' faces and {counts.people:,} people in {where}"
    else:
        what = f"the faces of photos in {', '.join(display_path(path) for path in paths or ())}"
    require_yes(f"Delete {what} for good?", "nothing was deleted", yes)
    if everything:
        photos = library.forget_everything()
        return Result({"photos": photos, "everything": True}, f"forgot {pluralise(photos, 'photo')}")
    if person is not None:
        photos = library.people.forget(person)
        text = f"forgot {known.name}, and their faces in {pluralise(photos, 'photo')}"
        return Result({"photos": photos, "everything": False, "person": known.name}, text)
    try:
        photos = library.forget(paths or [])
    except InvalidInputError as error:
        named = [str(path) for path in paths or () if str(path) in library.people]
        hint = f". To forget a person: `setnet forget --person {shlex.quote(named[0])}`" if named else ""
        raise InvalidInputError(f"{error}{hint}") from None
    without = [each.name for each in library.people if not each.examples]
    remedy = f"no example face is left of {', '.join(without)}: `setnet people add` gives new ones"
    return Result(
        {"photos": photos, "everything": False, "people_without_examples": without},
        f"forgot {pluralise(photos, 'photo')}",
        remarks=[remedy] if without else [],
    )
