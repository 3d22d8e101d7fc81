"""Make an album, index it, ask it three questions, and say what to try next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.options import JsonOption, make_app

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from setnet.cli.demo.album import AlbumPhoto
    from setnet.cli.demo.queries import Question
    from setnet.library import Answer

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
    """See it work: make an album of synthetic people, index it, ask it three questions.

    The album's 64 photos are composed from the ten synthetic people of the package openpeople; the
    questions use portraits that are not in it, so that the true answers are known and can be compared.
    """
    from setnet.cli.demo.album import make_album
    from setnet.cli.demo.queries import three_questions
    from setnet.cli.output import print_json

    place = (folder or _default_folder()).expanduser().absolute()
    said = _Said(json)
    start = perf_counter()
    said("Composing an album of group photos from ten synthetic people ...")
    photos = make_album(place / "album")
    portraits = _portraits(place / "portraits")
    said(f"  {len(photos)} photos in {place / 'album'} ({perf_counter() - start:.1f} s)")
    report, answers = _indexed_and_asked(place, photos, portraits, three_questions(photos), said)
    if json:
        print_json({"album": str(place / "album"), "library": str(place / "library"), **report, **answers})
    elif not serve:
        _say_next(place)
    if serve:
        from setnet.cli.demo.serving import serve_album

        serve_album(place / "library", portraits, port)


class _Said:
    """Prints for people, keeps still for programs."""

    def __init__(self, silent: bool) -> None:
        self.silent = silent

    def __call__(self, text: str) -> None:
        if not self.silent:
            typer.echo(text)


def _indexed_and_asked(
    place: Path,
    photos: list[AlbumPhoto],
    portraits: dict[str, Path],
    questions: list[Question],
    said: _Said,
) -> tuple[dict[str, Any], dict[str, Any]]:
    from setnet.cli.demo.queries import ndcg_at_10
    from setnet.library import Library, contact_sheet

    said("Finding the faces in them ...")
    truth = {photo.name: photo for photo in photos}
    results = []
    with Library.open_or_create(place / "library") as library:
        report = library.index([place / "album"], prune=True)
        counts = library.catalog.counts()
        said(f"  {counts.faces} faces in {counts.photos} photos ({report.seconds:.1f} s)")
        people = {name: library.person(str(path)) for name, path in portraits.items()}
        said(_most_alike({name: person.descriptors[0] for name, person in people.items()}))
        for number, question in enumerate(questions, 1):
            answer = library.find(
                [people[name] for name in question.people],
                without=[people[name] for name in question.without],
                k=10,
                at_least=1,
            )
            score = ndcg_at_10(question, [truth[hit.path.name] for hit in answer.hits], photos)
            results.append(
                {"question": str(question), "ndcg@10": round(score, 2), "hits": _hits(answer, truth)}
            )
            _show(number, question, answer, truth, score, said)
            sheet = place / f"question-{number}.png"
            contact_sheet(answer, sheet, title=str(question))
            said(f"  as a picture: {sheet}")
    facts = {"photos": counts.photos, "faces": counts.faces, "seconds": round(report.seconds, 2)}
    return facts, {"questions": results}


def _show(
    number: int,
    question: Question,
    answer: Answer,
    truth: dict[str, AlbumPhoto],
    score: float,
    said: _Said,
) -> None:
    from setnet.cli.output import print_table

    if said.silent:
        return
    best = sum(question.relevance(photo) == len(question.people) for photo in truth.values())
    typer.echo(f"\nQuestion {number}: photos with {question}? ({best} photos have them all)")
    print_table(
        ["", "score", "create_files", "truly in it", "photo"],
        [
            (
                rank,
                f"{hit.score:.2f}",
                ", ".join(f"{m.person} {m.similarity:.2f}" for m in hit.matches),
                " ".join(sorted(truth[hit.path.name].people, key=lambda p: (p not in question.people, p))),
                hit.path.name,
            )
            for rank, hit in enumerate(answer.hits, 1)
        ],
        right=["", "score"],
    )
    milliseconds = answer.seconds["search"] * 1000
    typer.echo(
        f"  nDCG@10 {score:.1f} % of the ideal ranking; {answer.searched} photos in {milliseconds:.1f} ms"
    )


def _most_alike(portraits: dict[str, NDArray[np.float32]]) -> str:
    """Tell which two people are hardest to tell apart: that is where wrong answers come from."""
    pairs = [(float(portraits[a] @ portraits[b]), a, b) for a in portraits for b in portraits if a < b]
    similarity, first, second = max(pairs)
    return (
        f"  the two portraits most alike: {first} and {second}, similarity {similarity:.2f} (a match is 0.40)"
    )


def _hits(answer: Answer, truth: dict[str, AlbumPhoto]) -> list[dict[str, Any]]:
    return [
        {
            "photo": str(hit.path),
            "score": round(hit.score, 4),
            "found": [m.person for m in hit.matches],
            "truth": truth[hit.path.name].people,
        }
        for hit in answer.hits
    ]


def _portraits(folder: Path) -> dict[str, Path]:
    """Copy the portraits to where a user can find them again; none of them is in the album."""
    from setnet.cli.demo.cutouts import PEOPLE, portrait_path

    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for person in PEOPLE:
        found[person] = folder / f"{person}.jpg"
        if not found[person].is_file():
            shutil.copyfile(portrait_path(person), found[person])
    return found


def _default_folder() -> Path:
    from setnet.library import default_library

    return default_library().parent / "demo"


def _say_next(place: Path) -> None:
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
