"""`setnet demo`: compose an album, index it, answer three queries, and score them by the ground truth."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import PortOption, make_app, option
from setnet.cli.output import say
from setnet.errors import VersionError

if TYPE_CHECKING:
    from setnet.cli.demo_album import AlbumPhoto, DemoQuery
    from setnet.library import Library, QueryPerson

app = make_app()


@command(app, library=False)
def demo(
    call: Call,
    folder: Annotated[
        Path | None, option("Where to put it all [default: in the user's data folder].", metavar="DIR")
    ] = None,
    serve: Annotated[
        bool, option("Then open the album as a web page, with the ten people saved.", "--serve")
    ] = False,
    port: PortOption = 8422,
) -> Result | None:
    """See it work: make an album of synthetic people, index it, run three queries.

    The album's 64 photos are composed from the ten synthetic people of the package openpeople; the
    queries use portraits that are not in it, so that the answers can be compared with the ground truth.
    Four of the ten look like one another; the queries are for the others.
    """
    from setnet.cli.demo_album import make_album, three_queries
    from setnet.library import Library

    place = (folder or call.place.parent / "demo").expanduser().absolute()
    album = place / "album"
    try:
        Library.open_or_create(place / "library").close()
    except VersionError as error:
        if folder is not None:  # there may be a library that is not the demo's
            raise
        call.tell(f"{error}: the demo makes its library again")
        shutil.rmtree(place / "library")
    start = perf_counter()
    call.tell("Composing an album of group photos from ten synthetic people ...")
    photos = make_album(album, call.bar.show)
    call.bar.stop()
    portraits = copy_portraits(place / "portraits")
    call.tell(f"  {len(photos)} photos in {album} ({perf_counter() - start:.1f} s)")
    call.tell("Finding the faces in them ...")
    with Library.open_or_create(place / "library") as library:
        report = library.index([album], prune=True, progress=call.bar.show_index)
        call.bar.stop()
        counts = library.photos.counts()
        call.tell(f"  {counts.faces} faces in {counts.photos} photos ({report.seconds:.1f} s)")
        people = {name: library.person(str(path)) for name, path in portraits.items()}
        answers = [
            _answer_query(library, number, query, people, photos, place / f"question-{number}.html")
            for number, query in enumerate(three_queries(photos), 1)
        ]
        if serve:
            for portrait in portraits.values():
                if portrait.stem not in library.people:
                    library.people.add_photos(portrait.stem, [str(portrait)])
    facts = {
        "album": album,
        "library": place / "library",
        "photos": counts.photos,
        "faces": counts.faces,
        "seconds": round(report.seconds, 2),
        "questions": [facts for facts, _ in answers],
    }
    parts = [part for _, parts in answers for part in parts]
    result = Result(facts, *parts, *([] if serve else [_next_steps(place, folder)]))
    if not serve:
        return result
    from setnet.web import serve as serve_library

    result.print(call.json)
    serve_library(place / "library", port=port, open_page=True, say=say)
    return None


def _next_steps(place: Path, folder: Path | None) -> str:
    where = "" if folder is None else f" --folder {folder}"
    setnet = "setnet" if shutil.which("setnet") else sys.argv[0]
    return f"""
See the album in the browser, with the ten people named:
  {setnet} demo --serve{where}
or go on here:
  {setnet} search {place}/portraits/Cleo.jpg --library {place}/library --sheet out.html
  {setnet} people add Cleo {place}/portraits/Cleo.jpg --library {place}/library
and on photos of your own (nothing leaves this machine):
  {setnet} index ~/Pictures
  {setnet} search somebody.jpg another.jpg --sheet both.html
  {setnet} status"""


def _answer_query(
    library: Library,
    number: int,
    query: DemoQuery,
    people: dict[str, QueryPerson],
    photos: list[AlbumPhoto],
    sheet: Path,
) -> tuple[dict[str, Any], list[str | Rows]]:
    """Return the answer to a question with the ground truth, for programs and for people; write its sheet."""
    from setnet.cli.demo_album import NAMES, ndcg_at_10
    from setnet.library import PhotoQuery, contact_sheet

    present = [people[name] for name in query.people]
    without = [people[name] for name in query.without]
    answer = library.search(PhotoQuery(present, without=without, k=10, at_least=1))
    contact_sheet(answer, sheet, title=str(query))
    photo_of = {photo.name: photo for photo in photos}
    ranked = [photo_of[hit.path.name] for hit in answer.hits]
    truth = [[NAMES[person] for person in photo.people] for photo in ranked]
    ndcg = ndcg_at_10(query, ranked, photos)
    facts = {
        "question": str(query),
        "ndcg@10": round(ndcg, 2),
        "hits": [
            hit.to_dict() | {"found": list(hit.people), "truth": there}
            for hit, there in zip(answer.hits, truth, strict=True)
        ],
    }
    names = {person.name for person in answer.people}
    rows = [
        (
            rank,
            f"{hit.score:.2f}",
            ", ".join(f"{m.person} {m.similarity:.2f}" for m in hit.matches),
            " ".join(sorted(there, key=lambda name: (name not in names, name))),
            hit.path.name,
        )
        for rank, (hit, there) in enumerate(zip(answer.hits, truth, strict=True), 1)
    ]
    complete = sum(query.relevance(photo) == len(query.people) for photo in photos)
    milliseconds = answer.seconds["search"] * 1000
    return facts, [
        f"\nQuestion {number}: photos with {query}? ({complete} photos have them all)",
        Rows(["", "score", "found", "truly in it", "photo"], rows, right=["", "score"]),
        f"  nDCG@10 {ndcg:.1f} % of the ideal ranking; "
        f"{answer.searched} photos in {milliseconds:.1f} ms\n  as a page: {sheet}",
    ]


def copy_portraits(folder: Path) -> dict[str, Path]:
    """Copy the portraits to where a user can find them again; none of them is in the album."""
    from setnet.cli.demo_album import NAMES, portrait_path

    folder.mkdir(parents=True, exist_ok=True)
    copies = {person: folder / f"{name}.jpg" for person, name in NAMES.items()}
    for person, copy in copies.items():
        if not copy.is_file():
            shutil.copyfile(portrait_path(person), copy)
    return copies
