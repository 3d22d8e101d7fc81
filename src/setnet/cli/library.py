"""Looking after a library: `setnet status`, `check`, `repair`, `backup`, `restore` and `forget`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.options import JsonOption, LibraryOption, argument, make_app, open_library, option
from setnet.cli.output import print_either, print_facts, print_json, print_table, say
from setnet.errors import InvalidInputError
from setnet.library.paths import display_path
from setnet.wording import pluralise

app = make_app()


@app.command()
def status(
    failures: Annotated[int, option("How many unreadable files to list.", min=0, metavar="N")] = 20,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Show what is in the library, what it costs on disk, and which files could not be read, and why."""
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
        rows.insert(2, ("of them", f"{pluralise(counts.shots, 'shot')} of videos"))
    if counts.unfinished:
        rows.append(
            (
                "unfinished",
                f"{pluralise(counts.unfinished, 'photo')}: the next `setnet index` completes what is missing",
            )
        )
    if counts.failed:
        rows.append(
            ("not readable", f"{pluralise(counts.failed, 'file')}: `setnet index --retry` tries again")
        )
    print_facts(rows)
    if counts.failed and failures:
        print_table(
            ["not readable", "why"],
            [(display_path(failed.path), failed.reason) for failed in now.failures[:failures]],
        )
        if counts.failed > failures:
            typer.echo(f"... and {counts.failed - failures:,} more (--failures N shows more)")


@app.command()
def check(library: LibraryOption = None, json: JsonOption = False) -> None:
    """Verify every stored byte of the library and that its parts agree.

    The exit status is 1 if there is a problem.
    """
    with open_library(library) as opened:
        problems = opened.check()
    if json:
        print_json({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            typer.echo(problem)
        if not problems:
            typer.echo("the library is sound")
    if problems:
        say("`setnet repair` repairs what it can; `setnet restore BACKUP` brings a backup back")
        raise typer.Exit(1)


@app.command()
def repair(
    folder: Annotated[Path | None, argument("LIBRARY", "The library's folder; as --library.")] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Repair a damaged library in place, and tell what could not be saved.

    Nothing is changed until the repaired state is complete; the damaged files are kept in its folder
    `quarantine` until something is forgotten, or for a week. The exit status is 1 if something is lost.
    """
    from setnet.library import Library, default_library

    done = Library.repair(folder or library or default_library())
    print_either(
        done.to_dict(),
        f"the library has {pluralise(done.photos, 'photo')} and {pluralise(done.people, 'person', 'people')}",
        json,
    )
    for text in done.lost:
        say(f"lost: {text}")
    if done.to_read:
        command = " ".join(("setnet index", *done.folders[:20]))
        say(f"{pluralise(done.to_read, 'photo is', 'photos are')} to be read again: run `{command}`")
    if done.lost:
        raise typer.Exit(1)


@app.command()
def backup(
    dest: Annotated[Path, argument("DEST", "A new or empty folder, or an earlier backup.")],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Copy the library, as it is at one moment, to another folder; it may be searched and indexed meanwhile.

    A second backup to the same folder copies what is new. A backup is a library: `--library DEST` opens it,
    `setnet restore DEST` brings it back. What is forgotten later stays in the backup until the next one.
    """
    with open_library(library) as opened:
        done = opened.backup(dest)
    people = pluralise(done.people, "person", "people")
    text = f"{pluralise(done.photos, 'photo')} and {people}, {done.copied_bytes / 1e6:,.1f} MB copied"
    print_either({"backup": str(dest)} | done.to_dict(), f"{display_path(dest)}: {text}", json)


@app.command()
def restore(
    backup: Annotated[Path, argument("BACKUP")],
    to: Annotated[Path | None, argument("TO", "A new or empty folder; none: your library.")] = None,
    replace: Annotated[
        bool, option("Replace the library that is there, once the new one is complete.", "--replace")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Verify a backup and copy it to where it is used as the library."""
    from setnet.library import Library, default_library

    place = to or default_library()
    done = Library.restore(backup, place, replace)
    people = pluralise(done.people, "person", "people")
    text = f"{display_path(place)}: {pluralise(done.photos, 'photo')} and {people}"
    print_either({"library": str(place)} | done.to_dict(), text, json)


@app.command()
def forget(
    paths: Annotated[list[Path] | None, argument("PATH", "Photos or folders to forget.")] = None,
    everything: Annotated[
        bool, option("Delete the whole library: faces, people, thumbnails.", "--everything")
    ] = False,
    yes: Annotated[bool, option("Do not ask for confirmation.", "--yes")] = False,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Delete the library's data about photos, or everything, for good. The photos themselves stay.

    Descriptors are removed from every file of the library, not only marked as deleted, and from the examples
    of saved people. A photo that lies in an indexed folder comes back with the next `setnet index` of it.
    """
    if everything == bool(paths):
        raise InvalidInputError("say what to forget: photos or folders, or --everything")
    with open_library(library) as opened:
        counts = opened.photos.counts()
        if everything:
            where = display_path(opened.path)
            what = f"all {counts.photos:,} photos' faces and {counts.people:,} people in {where}"
        else:
            what = f"the faces of photos in {', '.join(display_path(p) for p in paths or ())}"
        if not yes and not typer.confirm(f"Delete {what} for good?", err=True):
            say("nothing was deleted")
            raise typer.Exit(1)
        photos = opened.forget_everything() if everything else opened.forget(paths or [])
        without = [] if everything else [person.name for person in opened.people if not person.examples]
    more = {} if everything else {"people_without_examples": without}
    print_either(
        {"photos": photos, "everything": everything, **more}, f"forgot {pluralise(photos, 'photo')}", json
    )
    if without:
        say(f"no example face is left of {', '.join(without)}: `setnet people add` gives new ones")
