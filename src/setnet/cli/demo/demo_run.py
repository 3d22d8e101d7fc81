"""Run the demo: compose the album, index it, answer three queries and score them by the ground truth."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from setnet.cli.demo.album import AlbumPhoto, make_album
from setnet.cli.demo.cutouts import PEOPLE, portrait_path
from setnet.cli.demo.queries import DemoQuery, ndcg_at_10, three_queries
from setnet.library import Answer, Library, PhotoQuery, contact_sheet

if TYPE_CHECKING:
    from setnet.library import QueryPerson

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
    start = perf_counter()
    say("Composing an album of group photos from ten synthetic people ...")
    photos = make_album(folder / "album")
    portraits = _copied_portraits(folder / "portraits")
    say(f"  {len(photos)} photos in {folder / 'album'} ({perf_counter() - start:.1f} s)")
    say("Finding the faces in them ...")
    with Library.open_or_create(folder / "library") as library:
        report = library.index([folder / "album"], prune=True)
        counts = library.catalog.counts()
        say(f"  {counts.faces} faces in {counts.photos} photos ({report.seconds:.1f} s)")
        people = {name: library.person(str(path)) for name, path in portraits.items()}
        say(_most_alike(people, library.matching.threshold))
        answers = tuple(
            _answered(library, query, people, photos, folder / f"question-{number}.png")
            for number, query in enumerate(three_queries(photos), 1)
        )
    return DemoReport(
        folder / "album", folder / "library", portraits, counts.photos, counts.faces, report.seconds, answers
    )


def _answered(
    library: Library, query: DemoQuery, people: dict[str, QueryPerson], photos: list[AlbumPhoto], sheet: Path
) -> DemoAnswer:
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


def _copied_portraits(folder: Path) -> dict[str, Path]:
    """Copy the portraits to where a user can find them again; none of them is in the album."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = {person: folder / f"{person}.jpg" for person in PEOPLE}
    for person, copy in copies.items():
        if not copy.is_file():
            shutil.copyfile(portrait_path(person), copy)
    return copies
