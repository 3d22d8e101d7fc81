"""`setnet search`: find the photos that contain these people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.search.result_files import copy_photos, link_photos, make_folder, print_csv, print_paths
from setnet.cli.shared_options import (
    AfterOption,
    BeforeOption,
    JsonOption,
    LibraryOption,
    WithoutOption,
    make_app,
    open_library,
)
from setnet.errors import InvalidInputError
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.library import Answer, GroupTotal, PhotoHit, PhotoQuery

app = make_app()


@app.command()
def search(
    people: Annotated[
        list[str],
        typer.Argument(
            metavar="PERSON",
            help="A saved name; a group (g17); a photo (its largest face; group.jpg#3 is the third from the "
            "left); or a folder of photos of one person.",
            show_default=False,
        ),
    ],
    k: Annotated[int, typer.Option("-k", min=1, metavar="N", help="How many photos to show.")] = 20,
    all_people: Annotated[bool, typer.Option("--all", help="Only photos with all of them.")] = False,
    at_least: Annotated[
        int, typer.Option(min=0, metavar="N", help="Only photos with at least this many of them.")
    ] = 1,
    only: Annotated[bool, typer.Option("--only", help="Only photos with nobody else in them.")] = False,
    sure: Annotated[bool, typer.Option("--sure", help="Only sure matches count, no guesses.")] = False,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            min=-1.0,
            max=1.0,
            metavar="X",
            help="A face matches from this similarity on [default: follows from the number of example faces "
            "and of faces searched].",
        ),
    ] = None,
    without: WithoutOption = None,
    after: AfterOption = None,
    before: BeforeOption = None,
    folder: Annotated[
        str | None, typer.Option("--in", metavar="FOLDER", help="In this folder or below it.")
    ] = None,
    faces: Annotated[
        str | None, typer.Option(metavar="N", help="Photos with this many faces: 3, 2-5 or 4+.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only photos, or only shots of videos: photo or video.")
    ] = None,
    in_video: Annotated[
        bool, typer.Option("--in-video", help="Rank whole videos: who is anywhere in them, together or not.")
    ] = False,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE", help="exact; fast (short codes, then the best face by face); set (set vectors)."
        ),
    ] = "exact",
    collapse: Annotated[
        bool | None,
        typer.Option(
            "--collapse/--no-collapse",
            help="Show copies and bursts as one photo [default: in the table and the sheet only].",
            show_default=False,
        ),
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw a contact sheet: out.png or out.html.")
    ] = None,
    paths: Annotated[
        bool, typer.Option("--paths", help="Print only the photos' paths, for other programs.")
    ] = False,
    null: Annotated[
        bool,
        typer.Option("-0", "--null", help="Print paths that end with a null byte, for `xargs -0`."),
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print a table for spreadsheets.")] = False,
    copy_to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also copy the photos there; no file there is replaced."),
    ] = None,
    link_to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also make symbolic links to the photos there.")
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    A match is sure when next to no stranger is as similar, else a guess: its name has a question mark.
    The exit status is 1 when no photo fits, or one that fits could not be copied.
    """
    from setnet.library import Conditions, PhotoQuery, check_sheet_path, contact_sheet

    if sum((paths or null, csv, json)) > 1:
        raise InvalidInputError("print one of --paths, --csv and --json")
    if sheet is not None:
        check_sheet_path(sheet)
    for folder_for_photos in filter(None, (copy_to, link_to)):
        make_folder(folder_for_photos)
    query = PhotoQuery(
        people,
        without=without or (),
        k=k,
        mode=mode,
        at_least=len(people) if all_people else at_least,
        only=only,
        sure=sure,
        min_similarity=min_similarity,
        totals=True,
        conditions=Conditions.parse(after, before, folder, faces, kind),
    )
    if in_video:
        _refuse_with_videos(kind, sheet, paths, null, csv, copy_to, link_to)
        _print_videos(query, library, json)
        return
    with open_library(library) as opened:
        answer = opened.find(query)
    shown_answer = answer if collapse is False else answer.collapsed()
    answer = shown_answer if collapse else answer
    for warning in answer.warnings:
        say(f"note: {warning}")
    if paths or null:
        print_paths(answer.hits, b"\0" if null else b"\n")
    elif csv:
        print_csv(answer.hits)
    else:
        _print(answer if json else shown_answer, json, "at least " if mode == "fast" else "")
    complete = bool(answer.hits)
    if copy_to is not None:
        complete &= copy_photos(answer.hits, copy_to)
    if link_to is not None:
        complete &= link_photos(answer.hits, link_to)
    if sheet is not None:
        contact_sheet(shown_answer, sheet)
        say(f"contact sheet: {sheet}")
    if not complete:
        raise typer.Exit(1)


def _refuse_with_videos(kind: str | None, *others: object) -> None:
    if kind == "photo" or any(others):
        raise InvalidInputError(
            "--in-video lists videos: leave out --kind photo, --sheet, --paths, --csv, --copy-to, --link-to"
        )


def _print_videos(query: PhotoQuery, library: Path | None, json: bool) -> None:
    from setnet.library import display_path

    with open_library(library) as opened:
        found = opened.videos_with(query)
    if json:
        print_json({"videos": [video.to_dict() for video in found]})
    elif found:
        print_table(
            ["", "score", "who", "video"],
            [
                (
                    rank,
                    f"{video.score:.3f}",
                    ", ".join(f"{each.match.label} {_times(each.shot)}" for each in video.appearances),
                    display_path(video.best.path),
                )
                for rank, video in enumerate(found, 1)
            ],
            right=["", "score"],
        )
    else:
        say("no video has them")
    if not found:
        raise typer.Exit(1)


def _times(shot: PhotoHit) -> str:
    from setnet.library import clock

    return f"{clock(shot.photo.start or 0.0)}-{clock(shot.photo.stop or 0.0)}"


def _print(answer: Answer, json: bool, roughly: str) -> None:
    if json:
        print_json(answer.to_dict())
        return
    if not answer.hits:
        if answer.searched:
            say(f"no photo fits among the {answer.searched:,} searched")
        else:
            say("the library is empty: `setnet index PHOTOS` fills it")
        return
    print_table(
        ["", "score", "who", "photo"],
        [
            (rank, f"{hit.score:.3f}", _who(hit), hit.photo.shown + _more(hit))
            for rank, hit in enumerate(answer.hits, 1)
        ],
        right=["", "score"],
    )
    if answer.totals:
        say(_totals(answer.totals, len(answer.people), roughly))
    milliseconds = answer.seconds["search"] * 1000
    found = sum(1 + len(hit.copies) + len(hit.others) for hit in answer.hits)
    rows = f" in {len(answer.hits)} rows" if found > len(answer.hits) else ""
    say(f"{found} of {counted(answer.searched, 'photo')}{rows}, searched in {milliseconds:.1f} ms")


def _totals(totals: tuple[GroupTotal, ...], people: int, roughly: str) -> str:
    """Return how many photos have how many of the people; `fast`, which looks at some, knows a least number.

    Photos in which one of the matches is a guess are counted apart.

    >>> from setnet.library import GroupTotal
    >>> _totals((GroupTotal(2, 1, 1), GroupTotal(1, 1240, 1200)), 2, "")
    'all 2: 1 photo, 1 of 2: 1,200 photos and maybe 40'
    """
    groups = [
        f"{f'all {people}' if total.matched == people else f'{total.matched} of {people}'}: "
        f"{roughly}{_photos(total)}"
        for total in totals
    ]
    return ", ".join(groups) if people > 1 else groups[0].partition(": ")[2] + " with this person"


def _photos(total: GroupTotal) -> str:
    maybe = total.photos - total.sure
    if maybe and not total.sure:
        return f"maybe {maybe:,} photo{'' if maybe == 1 else 's'}"
    return f"{total.sure:,} photo{'' if total.sure == 1 else 's'}{f' and maybe {maybe:,}' if maybe else ''}"


def _more(hit: PhotoHit) -> str:
    """Return what a row stands for besides its photo."""
    parts = [counted(len(hit.copies), "copy", "copies")] if hit.copies else []
    parts += [f"{len(hit.others):,} of the same moment"] if hit.others else []
    return f"  (and {', '.join(parts)})" if parts else ""


def _who(hit: PhotoHit) -> str:
    return ", ".join(f"{m.label} {m.similarity:.2f}" for m in hit.matches) or "-"
