"""`setnet search`: find the photos that contain these people, and take them elsewhere.

Results go to other programs as paths, as CSV, or as copies of the photos.
"""

from __future__ import annotations

import csv
import filecmp
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from setnet.addresses import is_address
from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import (
    AfterOption,
    AllOption,
    AtLeastOption,
    BeforeOption,
    LimitOption,
    OnlyOption,
    SheetOption,
    WithoutOption,
    argument,
    check_left_out,
    complete_names,
    make_app,
    option,
)
from setnet.cli.output import one_line, print_text, say
from setnet.durable import storage_errors
from setnet.errors import InvalidInputError
from setnet.library.paths import display_path, numbered_places, resolve_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import Answer, GroupTotal, PhotoHit, PhotoQuery, QueryPerson, SavedSearch
    from setnet.library.query import PersonLike

app = make_app()


@command(app)
def search(
    call: Call,
    people: Annotated[
        list[str] | None,
        argument(
            "PERSON",
            "A saved name; a group (g17); a photo (its largest face; group.jpg#3 is the third from the "
            "left); or a folder of photos of one person.",
            autocompletion=complete_names,
        ),
    ] = None,
    limit: LimitOption = 20,
    all_people: AllOption = False,
    at_least: AtLeastOption = 1,
    only: OnlyOption = False,
    sure: Annotated[bool, option("Only sure matches count, no guesses.", "--sure")] = False,
    min_similarity: Annotated[
        float | None,
        option(
            "A face matches from this similarity on [default: follows from the number of example faces "
            "and of faces searched].",
            min=-1.0,
            max=1.0,
            metavar="X",
        ),
    ] = None,
    without: WithoutOption = None,
    after: AfterOption = None,
    before: BeforeOption = None,
    folder: Annotated[str | None, option("In this folder or below it.", "--in", metavar="FOLDER")] = None,
    faces: Annotated[str | None, option("Photos with this many faces: 3, 2-5 or 4+.", metavar="N")] = None,
    kind: Annotated[
        str | None, option("Only photos, or only shots of videos: photo or video.", metavar="KIND")
    ] = None,
    mode: Annotated[
        str,
        option("exact; fast (short codes, then the best face by face); set (set vectors).", metavar="MODE"),
    ] = "exact",
    collapse: Annotated[
        bool | None,
        option(
            "Show copies and bursts as one photo [default: in the table and the sheet only].",
            "--collapse/--no-collapse",
            show_default=False,
        ),
    ] = None,
    sheet: SheetOption = None,
    paths: Annotated[bool, option("Print only the photos' paths, for other programs.", "--paths")] = False,
    null: Annotated[
        bool, option("Print paths that end with a null byte, for `xargs -0`.", "-0", "--null")
    ] = False,
    csv: Annotated[bool, option("Print a table for spreadsheets.", "--csv")] = False,
    copy_to: Annotated[
        Path | None, option("Also copy the photos there; no file there is replaced.", metavar="DIR")
    ] = None,
    save: Annotated[
        str | None,
        option("Keep this search under a name; `setnet searches` lists what is kept.", metavar="NAME"),
    ] = None,
    link_to: Annotated[
        Path | None,
        option(
            "With --save: a folder of links to all photos of the search, also after each `setnet index`.",
            metavar="DIR",
        ),
    ] = None,
    saved: Annotated[
        str | None,
        option("Search as was saved under this name, and bring its links up to date.", metavar="NAME"),
    ] = None,
    searchers: Annotated[
        str | None,
        option("Ask searchers of a collection (`setnet serve --collection`) for photos.", metavar="URL,URL"),
    ] = None,
) -> Result:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    A match is sure when next to no stranger is as similar, else a guess: its name has a question mark.
    The exit status is 1 when no photo fits, or one that fits could not be copied.
    """
    from setnet.library import SavedSearch

    if searchers is not None:
        check_left_out(
            "searchers know nothing of people, and name photos without reading them",
            sure=sure, min_similarity=min_similarity, collapse=collapse, sheet=sheet,
            paths=paths, null=null, csv=csv, copy_to=copy_to, save=save, saved=saved,
        )  # fmt: skip
    if sum((paths or null, csv, call.json)) > 1:
        raise InvalidInputError("print one of --paths, --csv and --json")
    if sheet is not None:
        from setnet.library.sheets import check_sheet_path

        check_sheet_path(sheet)
    if copy_to is not None:
        with storage_errors(copy_to, "cannot write "):  # before anything is searched
            copy_to.mkdir(parents=True, exist_ok=True)
    if link_to is not None and save is None:
        raise InvalidInputError("--link-to goes with --save NAME; --copy-to copies photos without it")
    if saved is not None:
        if people or save:
            raise InvalidInputError("--saved says who to look for: leave out PERSON and --save")
        search = call.library.searches.get(saved)
        _update_links(call, search)
    else:
        from setnet.library.query import face_range_from

        low, high = face_range_from(faces) if faces else (None, None)
        search = SavedSearch(
            save or "",
            tuple(people or ()),
            tuple(without or ()),
            len(people or ()) if all_people else at_least,
            only,
            sure,
            min_similarity,
            after=after,
            before=before,
            folder=folder,
            min_faces=low,
            max_faces=high,
            kind=kind,
            link_to=None if link_to is None else str(link_to),
        )
    query = replace(search.query(limit), mode=mode)
    if searchers is not None:
        return _ask_searchers(call, searchers.split(","), query)
    if save is not None:
        place = folder and display_path(resolve_path(folder))
        search = call.library.searches.save(replace(search, folder=place))
        say(f"saved: setnet search --saved {shlex.quote(search.name)}")
        _update_links(call, search)
    answer = call.library.search(query)
    shown_answer = answer if collapse is False else answer.collapse()
    answer = shown_answer if collapse else answer
    for warning in answer.warnings:
        say(f"note: {warning}")
    if paths or null:
        print_paths(answer.hits, b"\0" if null else b"\n")
    elif csv:
        print_csv(answer.hits)
    complete = bool(answer.hits)
    if copy_to is not None:
        complete &= copy_photos(answer.hits, copy_to)
    if sheet is not None:
        from setnet.library import contact_sheet

        contact_sheet(shown_answer, sheet)
        say(f"contact sheet: {sheet}")
    if paths or null or csv:
        return Result(None, status=not complete)
    return Result(answer, _table(shown_answer), remarks=_remarks(shown_answer, mode), status=not complete)


def _update_links(call: Call, search: SavedSearch) -> None:
    """Bring the links of a saved search up to date, if it has a folder of them."""
    if search.link_to is not None:
        for remark in call.library.searches.update_links(search) or [f"links: {search.link_to}"]:
            say(remark)


def _ask_searchers(call: Call, urls: Sequence[str], query: PhotoQuery) -> Result:
    """Return the items of a collection that its searchers find; a person matches as in the engine."""
    from setnet.connect import CollectionClient
    from setnet.heads import Logistic
    from setnet.library.collection import settings_in
    from setnet.library.creation import library_exists
    from setnet.library.query import person_in_file, with_unique_names

    conditions = query.conditions
    if conditions is not None and conditions.kind == "photo":
        raise InvalidInputError("searchers do not know what is no video: leave out --kind photo")
    with CollectionClient(urls) as client:
        about = client.about
        settings = settings_in(about, urls[0])
        has_names = library_exists(call.place) and call.library.photos.meta("model") == about["model"]

        def person(given: PersonLike) -> QueryPerson:
            text = str(given)
            return call.library.person(text) if has_names else person_in_file(text, (), lambda: settings)

        people = with_unique_names([person(one) for one in query.people])
        without = [person(one).descriptors for one in query.without]
        found = client.search(
            [one.descriptors for one in people],
            query.k,
            cast(Any, query.mode),  # the searchers say which there are
            at_least=query.at_least,
            only=query.only,
            without=without or None,
            where=conditions.where() if conditions else None,
        )
    least = Logistic(*about["logistic"]).threshold
    hits: list[dict[str, Any]] = [
        {
            "photo": hit.id,
            "score": round(hit.score, 6),
            "matches": {
                people[match.query_element].name: round(match.similarity, 6)
                for match in hit.matches
                if match.similarity >= least
            },
        }
        for hit in found
    ]
    rows = [
        (
            rank,
            f"{hit['score']:.3f}",
            ", ".join(f"{n} {s:.2f}" for n, s in hit["matches"].items()),
            hit["photo"],
        )
        for rank, hit in enumerate(hits, 1)
    ]
    table = Rows(["", "score", "who", "photo"], rows, "no photo fits", ["", "score"])
    facts = {"hits": hits, "people": [one.name for one in people], "how": found.how, "recall": found.recall}
    remarks = [] if found.how == "exact" else [f"looked at {found.how}"]
    return Result(facts, table, remarks=remarks, status=not hits)


def _table(answer: Answer) -> Rows:
    rows = [
        (rank, f"{hit.score:.3f}", _who(hit), hit.photo.display_name + _also(hit))
        for rank, hit in enumerate(answer.hits, 1)
    ]
    if answer.searched:
        empty = f"no photo fits among the {answer.searched:,} searched"
    else:
        empty = "the library is empty: `setnet index PHOTOS` fills it"
    return Rows(["", "score", "who", "photo"], rows, empty, ["", "score"])


def _remarks(answer: Answer, mode: str) -> Iterator[str]:
    if not answer.hits:
        return
    if answer.totals:
        yield _totals(answer.totals, len(answer.people), "at least " if mode == "fast" else "")
    milliseconds = answer.seconds["search"] * 1000
    found = sum(1 + len(hit.copies) + len(hit.others) for hit in answer.hits)
    rows = f" in {len(answer.hits)} rows" if found > len(answer.hits) else ""
    yield f"{found} of {pluralise(answer.searched, 'photo')}{rows}, searched in {milliseconds:.1f} ms"


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
        return f"maybe {pluralise(maybe, 'photo')}"
    return pluralise(total.sure, "photo") + (f" and maybe {maybe:,}" if maybe else "")


def _also(hit: PhotoHit) -> str:
    """Return what a row stands for besides its photo."""
    parts = [pluralise(len(hit.copies), "copy", "copies")] if hit.copies else []
    parts += [f"{len(hit.others):,} of the same moment"] if hit.others else []
    return f"  (and {', '.join(parts)})" if parts else ""


def _who(hit: PhotoHit) -> str:
    return (
        ", ".join(f"{m.label} {'tag' if m.face is None else f'{m.similarity:.2f}'}" for m in hit.matches)
        or "-"
    )


def print_paths(hits: Sequence[PhotoHit], end: bytes = b"\n") -> None:
    """Print one path after the other, byte for byte, as other programs take them; a video's once.

    A terminal would obey control characters in names: there they are spelled.
    """
    paths = dict.fromkeys(hit.photo.stored_path for hit in hits)
    if sys.stdout.isatty():
        for path in paths:
            print_text(one_line(display_path(path)))
        return
    out = sys.stdout.buffer
    for path in paths:
        out.write(path + end)
    out.flush()


def print_csv(hits: Sequence[PhotoHit]) -> None:
    """Print a table that spreadsheets open: one row per photo, people with a question mark are guesses."""
    text = one_line if sys.stdout.isatty() else str
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["rank", "score", "matched", "people", "faces", "taken", "photo", "from", "to"])
    for rank, hit in enumerate(hits, 1):
        facts = hit.to_dict()
        people = text("; ".join(match.label for match in hit.matches))
        known = [
            len(facts["faces"]),
            facts["taken"],
            text(display_path(hit.path)),
            facts.get("from"),
            facts.get("to"),
        ]
        table.writerow([rank, f"{hit.score:.4f}", len(hit.matches), people, *known])


def copy_photos(hits: Sequence[PhotoHit], folder: Path) -> bool:
    """Copy the photos into a folder, and return whether all are there; no file there is ever replaced."""
    files, there = list(dict.fromkeys(hit.path for hit in hits)), 0  # shots of one video are one file
    for path in files:
        if is_address(path):
            say(f"note: {display_path(path)} is on no disk of this machine, and left out")
            continue
        if not path.is_file():
            say(f"note: {display_path(path)} is not there any more")
            continue
        with storage_errors(folder / path.name, "cannot write "):
            _copy(path, folder)
        there += 1
    say(f"copied {pluralise(there, 'photo')} to {display_path(folder)}")
    return there == len(files)


def _copy(photo: Path, folder: Path) -> None:
    """Copy a file under its name, or a numbered one, unless an earlier search did; no half of it is left."""
    for place in numbered_places(photo, folder):
        if place.is_file() and not place.is_symlink() and filecmp.cmp(photo, place, shallow=False):
            return
        try:
            place.touch(exist_ok=False)  # the name is ours now, also where there are no hard links
        except FileExistsError:
            continue
        partial = place.with_name(f".{place.name}.partial")
        try:
            shutil.copy2(photo, partial)
            partial.replace(place)
        except BaseException:
            partial.unlink(missing_ok=True)
            place.unlink()
            raise
        return
