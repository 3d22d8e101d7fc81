"""`setnet search`: find the photos that contain these people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.shared_options import (
    ClusterOption,
    JsonOption,
    LibraryOption,
    library_or_cluster,
    make_app,
    open_library,
)

if TYPE_CHECKING:
    from setnet.library import Answer, GroupTotal, PhotoHit

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
        int | None,
        typer.Option(min=0, metavar="N", help="Only photos with at least this many of them [default: 1]."),
    ] = None,
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
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="PERSON", help="Only photos without this person; may be repeated."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Taken on this date or later: 2019, 2019-07, 2019-07-14."),
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="DATE", help="Taken before this date.")] = None,
    folder: Annotated[
        str | None, typer.Option("--in", metavar="FOLDER", help="In this folder or below it.")
    ] = None,
    faces: Annotated[
        str | None, typer.Option(metavar="N", help="Photos with this many faces: 3, 2-5 or 4+.")
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE", help="exact; fast (short codes, then the best face by face); set (set vectors)."
        ),
    ] = "exact",
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw a contact sheet: out.png or out.html.")
    ] = None,
    library: LibraryOption = None,
    cluster: ClusterOption = None,
    json: JsonOption = False,
) -> None:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    A match is sure when next to no stranger is as similar, else a guess: its name has a question mark.
    The exit status is 1 when no photo fits.
    """
    from setnet.library import Conditions, PhotoQuery, contact_sheet

    query = PhotoQuery(
        people,
        without=without or (),
        k=k,
        mode=mode,
        at_least=len(people) if all_people else 1 if at_least is None else at_least,
        only=only,
        sure=sure,
        min_similarity=min_similarity,
        totals=True,
        conditions=Conditions.parse(after, before, folder, faces),
    )
    with open_library(library_or_cluster(library, cluster)) as opened:
        answer = opened.find(query)
    for warning in answer.warnings:
        say(f"note: {warning}")
    if sheet is not None:
        contact_sheet(answer, sheet)
    _print(answer, json, "at least " if mode == "fast" else "")
    if sheet is not None:
        say(f"contact sheet: {sheet}")
    if not answer.hits:
        raise typer.Exit(1)


def _print(answer: Answer, json: bool, roughly: str) -> None:
    from setnet.library import shown

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
        [(rank, f"{hit.score:.3f}", _who(hit), shown(hit.path)) for rank, hit in enumerate(answer.hits, 1)],
        right=["", "score"],
    )
    if answer.totals:
        say(_totals(answer.totals, len(answer.people), roughly))
    milliseconds = answer.seconds["search"] * 1000
    say(f"{len(answer.hits)} of {answer.searched:,} photos, searched in {milliseconds:.1f} ms")


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


def _who(hit: PhotoHit) -> str:
    return ", ".join(f"{m.label} {m.similarity:.2f}" for m in hit.matches) or "-"
