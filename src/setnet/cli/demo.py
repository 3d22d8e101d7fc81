"""`setnet demo`: compose an album, index it, answer three queries, and score them by the ground truth."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.options import JsonOption, make_app
from setnet.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from setnet.cli.demo_album import AlbumPhoto, DemoQuery
    from setnet.library import Answer, Library, QueryPerson

app = make_app()


@app.command()
def demo(
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to put it all [default: in the user's data folder]."),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then open the album as a web page, with the ten people saved.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of --serve; 0 takes a free one.")] = 8422,
    json: JsonOption = False,
) -> None:
    """See it work: make an album of synthetic people, index it, run three queries.

    The album's 64 photos are composed from the ten synthetic people of the package openpeople; the
    queries use portraits that are not in it, so that the answers can be compared with the ground truth.
    Four of the ten look like one another; the queries are for the others.
    """
    from setnet.library import default_library

    place = (folder or default_library().parent / "demo").expanduser().absolute()
    report = run_demo(place, say=(lambda _: None) if json else typer.echo)
    if json:
        print_json(report.to_dict())
    else:
        for number, answer in enumerate(report.answers, 1):
            _print_answer(number, answer)
    if serve:
        _serve(report, port)
    elif not json:
        _print_next_steps(place)


def _serve(report: DemoReport, port: int) -> None:
    """Serve the album as a web page, with its people saved so that a click is enough to search."""
    from setnet.library import Library
    from setnet.web import serve

    with Library.open(report.library) as library:
        for name, portrait in report.portraits.items():
            if name not in library.people:
                library.add_person(name, [str(portrait)])
    serve(report.library, port=port, open_page=True, say=say)


def _print_answer(number: int, scored: DemoAnswer) -> None:
    query, answer = scored.query, scored.answer
    typer.echo(f"\nQuestion {number}: photos with {query}? ({scored.complete} photos have them all)")
    print_table(
        ["", "score", "found", "truly in it", "photo"],
        [
            (
                rank,
                f"{hit.score:.2f}",
                ", ".join(f"{m.person} {m.similarity:.2f}" for m in hit.matches),
                " ".join(sorted(people, key=lambda p: (p not in query.people, p))),
                hit.path.name,
            )
            for rank, (hit, people) in enumerate(zip(answer.hits, scored.truth, strict=True), 1)
        ],
        right=["", "score"],
    )
    milliseconds = answer.seconds["search"] * 1000
    typer.echo(
        f"  nDCG@10 {scored.ndcg:.1f} % of the ideal ranking; "
        f"{answer.searched} photos in {milliseconds:.1f} ms\n  as a picture: {scored.sheet}"
    )


def _print_next_steps(place: Path) -> None:
    setnet = "setnet" if shutil.which("setnet") else sys.argv[0]
    typer.echo(
        f"""
Try next, on the album:
  {setnet} search {place}/portraits/P003.jpg --library {place}/library --sheet out.html
  {setnet} people add Friend {place}/portraits/P003.jpg --library {place}/library
and on photos of your own (nothing leaves this machine):
  {setnet} index ~/Pictures
  {setnet} search somebody.jpg another.jpg --sheet out.png
  {setnet} status"""
    )


Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """The answer to one query, with the ground truth.

    Attributes
    ----------
    truth : the people in each hit's photo
    complete : how many photos of the album show all people of the query
    ndcg : nDCG@10 in percent
    sheet : the contact sheet of the hits
    """

    query: DemoQuery
    answer: Answer
    truth: tuple[tuple[str, ...], ...]
    complete: int
    ndcg: float
    sheet: Path

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as values that JSON can hold."""
        return {
            "question": str(self.query),
            "ndcg@10": round(self.ndcg, 2),
            "hits": [
                hit.to_dict() | {"found": list(hit.people), "truth": list(people)}
                for hit, people in zip(self.answer.hits, self.truth, strict=True)
            ],
        }


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What the demo made and found."""

    album: Path
    library: Path
    portraits: dict[str, Path]
    photos: int
    faces: int
    seconds: float
    answers: tuple[DemoAnswer, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return {
            "album": str(self.album),
            "library": str(self.library),
            "photos": self.photos,
            "faces": self.faces,
            "seconds": round(self.seconds, 2),
            "questions": [answer.to_dict() for answer in self.answers],
        }


def run_demo(folder: Path, say: Say) -> DemoReport:
    """Make album, portraits, library and contact sheets in `folder`; `say` is called with each step."""
    from setnet.cli.demo_album import make_album, three_queries
    from setnet.library import Library

    start = perf_counter()
    say("Composing an album of group photos from ten synthetic people ...")
    photos = make_album(folder / "album")
    portraits = _copy_portraits(folder / "portraits")
    say(f"  {len(photos)} photos in {folder / 'album'} ({perf_counter() - start:.1f} s)")
    say("Finding the faces in them ...")
    with Library.open_or_create(folder / "library") as library:
        report = library.index([folder / "album"], prune=True)
        counts = library.catalog.counts()
        say(f"  {counts.faces} faces in {counts.photos} photos ({report.seconds:.1f} s)")
        people = {name: library.person(str(path)) for name, path in portraits.items()}
        say(_most_alike(people, library.matching.threshold))
        answers = tuple(
            _answer_query(library, query, people, photos, folder / f"question-{number}.png")
            for number, query in enumerate(three_queries(photos), 1)
        )
    return DemoReport(
        folder / "album", folder / "library", portraits, counts.photos, counts.faces, report.seconds, answers
    )


def _answer_query(
    library: Library, query: DemoQuery, people: dict[str, QueryPerson], photos: list[AlbumPhoto], sheet: Path
) -> DemoAnswer:
    from setnet.cli.demo_album import ndcg_at_10
    from setnet.library import PhotoQuery, contact_sheet

    truth = {photo.name: photo for photo in photos}
    answer = library.find(
        PhotoQuery(
            [people[name] for name in query.people],
            without=[people[name] for name in query.without],
            k=10,
            at_least=1,
        )
    )
    ranked = [truth[hit.path.name] for hit in answer.hits]
    contact_sheet(answer, sheet, title=str(query))
    return DemoAnswer(
        query=query,
        answer=answer,
        truth=tuple(photo.people for photo in ranked),
        complete=sum(query.relevance(photo) == len(query.people) for photo in photos),
        ndcg=ndcg_at_10(query, ranked, photos),
        sheet=sheet,
    )


def _most_alike(people: dict[str, QueryPerson], match: float) -> str:
    """Say which two people are hardest to tell apart: most wrong answers come from them."""
    portraits = {name: person.descriptors[0] for name, person in people.items()}
    pairs = [(float(portraits[a] @ portraits[b]), a, b) for a in portraits for b in portraits if a < b]
    similarity, first, second = max(pairs)
    return (
        f"  the two portraits most alike: {first} and {second}, similarity {similarity:.2f} "
        f"(a match is {match:.2f})"
    )


def _copy_portraits(folder: Path) -> dict[str, Path]:
    """Copy the portraits to where a user can find them again; none of them is in the album."""
    from setnet.cli.demo_album import PEOPLE, portrait_path

    folder.mkdir(parents=True, exist_ok=True)
    copies = {person: folder / f"{person}.jpg" for person in PEOPLE}
    for person, copy in copies.items():
        if not copy.is_file():
            shutil.copyfile(portrait_path(person), copy)
    return copies
