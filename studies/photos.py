"""End-to-end search: composed group photos are indexed and searched by a library, detector included."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from setnet.errors import InvalidInputError, PhotoError
from setnet.evaluate.measures import Measured, ndcg, ranking_measures
from setnet.evaluate.record import Record, Row, Run, mean_and_error
from setnet.evaluate.settings import Settings as BaseSettings
from setnet.evaluate.settings import experiment, option, setting
from setnet.evaluate.tables import CAPTION, Column, Table, result_table
from setnet.library import Library, QueryPerson, contact_sheet
from studies.album import Album, compose_album

TITLE = "End-to-end search, detector included"

MODES = ("exact", "fast", "set")
DETECTED = "detector only, faces recognised without error"
SHEETS = 4


@dataclass(frozen=True)
class _Query:
    """Two or three people, and the relevance of each photo for them."""

    people: tuple[str, ...]
    relevance: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """End-to-end, detector included: group photos composed of LFW pictures, indexed and searched."""

    lfw: Path = field(
        metadata=option("LFW's folder of identities.", metavar="LFW", is_argument=True, counts=False)
    )
    lists: Path = field(metadata=option("LFW's multi_person_photos.json.", metavar="FILE.json", counts=False))
    work: Path = field(
        metadata=option("Composed photos and their library are kept here.", metavar="DIR", counts=False)
    )
    count: int = setting(400, "Photos to compose.", minimum=10)
    queries: int = setting(60, "How many queries.", minimum=1)
    repeats: int = setting(3, "With other query faces each time.", minimum=1)
    sheets: Path | None = setting(
        None,
        "Write contact sheets of the best five photos of some queries here.",
        metavar="DIR",
        counts=False,
    )


@experiment("photos")
def run(run: Run, settings: Settings) -> None:
    """Measure search in group photos composed of LFW pictures, and where the points are lost."""
    run.total = len(MODES) + 1
    run.say("composing photos")
    album = compose_album(settings.lfw, settings.lists, settings.work, settings.count, settings.seed)
    queries = _queries(album, settings.queries, settings.seed)
    run.note(
        world=f"{len(album.photos)} group photos composed of LFW pictures of test-half people",
        lfw=str(settings.lfw),
    )
    run.say("indexing photos")
    started = time.monotonic()
    with Library.open_or_create(settings.work / "library") as library:
        if library.index([settings.work / "photos"]).added:
            run.note(indexing_seconds=round(time.monotonic() - started, 1))
        faces = _Examples(settings.lfw, album, library)
        found = _found_people(album, library)
        run.note(
            faces_placed=sum(map(len, album.photos.values())),
            faces_found=sum(map(len, found.values())),
            queries=len(queries),
        )
        detected = _detector_values(queries, found, settings.repeats)
        run.add(Row(DETECTED, detected.values, bound=True, draws=detected.draws))
        for mode in MODES:
            if not run.has(mode):
                run.say(mode)
                run.add(_mode_row(mode, queries, library, faces, settings.repeats))
        if settings.sheets is not None:
            write_sheets(settings.sheets, library, faces, _queries(album, 500, settings.seed))
    run.note(losses=_losses(run))


def write_sheets(out: Path, library: Library, faces: _Examples, queries: list[_Query]) -> None:
    """Write contact sheets of the best five photos for the queries with most full matches."""
    out.mkdir(parents=True, exist_ok=True)
    queries.sort(key=lambda q: -list(q.relevance.values()).count(len(q.people)))
    for number, query in enumerate(queries[:SHEETS], 1):
        answer = library.search(faces.people(query, 0), k=5, mode="fast")
        ranked = [*(query.relevance.get(hit.path.name, 0) for hit in answer.hits), 0]
        quality = float(ndcg(ranked, [*query.relevance.values()], 5))
        title = f"{' + '.join(name.replace('_', ' ') for name in query.people)}   nDCG@5 {quality:.1f}"
        contact_sheet(answer, out / f"example-{number}.html", title=title)


class _Examples:
    """Query faces: looked up once per picture, by the library's own detector and descriptor."""

    def __init__(self, lfw: Path, album: Album, library: Library) -> None:
        self.lfw, self.album, self.library = lfw, album, library
        self._known: dict[str, QueryPerson | None] = {}

    def people(self, query: _Query, repeat: int) -> list[QueryPerson]:
        """Return the query's people, each by one picture; other pictures in other repeats."""
        return [self._person(name, repeat) for name in query.people]

    def _person(self, name: str, repeat: int) -> QueryPerson:
        files = self.album.query_pictures[name]
        for turn in range(len(files)):
            file = files[(repeat + turn) % len(files)]
            if file not in self._known:
                try:
                    found = self.library.person(str(self.lfw / file))
                    shown = name.replace("_", " ")
                    self._known[file] = QueryPerson(shown, found.descriptors)
                except (InvalidInputError, PhotoError):  # no face found in it
                    self._known[file] = None
            person = self._known[file]
            if person is not None:
                return person
        raise InvalidInputError(f"no face was found in any query picture of {name}")


def _queries(album: Album, count: int, seed: int) -> list[_Query]:
    """Return groups of two (two of three) and three people who stand together in some photo."""
    rng = np.random.default_rng((seed, 7))
    groups: set[tuple[str, ...]] = set()
    for placed in album.photos.values():
        people = sorted({p.person for p in placed if p.person in album.query_pictures})
        for size in (2, 3):
            if len(people) >= size:
                groups.add(tuple(sorted(rng.choice(people, size, replace=False).tolist())))
    if not groups:
        raise InvalidInputError("no composed photo holds two people to query: compose more photos")
    ordered = sorted(groups)
    chosen = [ordered[i] for i in rng.permutation(len(ordered))[:count]]
    inside = {name: {p.person for p in placed} for name, placed in album.photos.items()}
    queries = []
    for people in chosen:
        counts = {name: len(who & set(people)) for name, who in inside.items()}
        queries.append(_Query(people, {name: number for name, number in counts.items() if number}))
    return queries


def _found_people(album: Album, library: Library) -> dict[str, set[str]]:
    """Return, per photo, the people whose face the detector found where they stand."""
    found: dict[str, set[str]] = {name: set() for name in album.photos}
    for photo in library.photos.all_photos():
        for placed in album.photos.get(photo.path.name, ()):
            for face in photo.faces:
                box = face.box
                if box.x0 <= placed.x <= box.x1 and box.y0 <= placed.y <= box.y1:
                    found[photo.path.name].add(placed.person)
    return found


def _detector_values(queries: Sequence[_Query], found: dict[str, set[str]], repeats: int) -> Measured:
    """Return the measures of ranking by truly found faces: what the detector alone would cost."""
    rankings = []
    for query in queries:
        held = {name: len(who & set(query.people)) for name, who in found.items()}
        order = sorted(held, key=lambda name: (-held[name], name))
        rankings.append([name for name in order if held[name]])
    return _measured([rankings] * repeats, queries)


def _mode_row(mode: str, queries: Sequence[_Query], library: Library, faces: _Examples, repeats: int) -> Row:
    repeated = []
    seconds = []
    for repeat in range(repeats):
        rankings = []
        for query in queries:
            answer = library.search(faces.people(query, repeat), k=30, mode=mode)
            seconds.append(answer.seconds["search"])
            rankings.append([hit.path.name for hit in answer.hits])
        repeated.append(rankings)
    measured = _measured(repeated, queries)
    return Row(mode, measured.values, {"mean_ms": 1000 * float(np.mean(seconds))}, draws=measured.draws)


def _measured(repeated: Sequence[Sequence[Sequence[str]]], queries: Sequence[_Query]) -> Measured:
    """Return each measure of the rankings of every repeat; a ranking is the names of photos, best first."""
    ones = [
        [
            ranking_measures(found, query.relevance, len(query.people))
            for found, query in zip(rankings, queries, strict=True)
        ]
        for rankings in repeated
    ]
    found = {key: [[one[key] for one in repeat] for repeat in ones] for key in ones[0][0]}
    names = sorted({name for query in queries for name in query.people})
    return Measured.of(found, [[names.index(name) for name in query.people] for query in queries])


def _losses(run: Run) -> dict[str, float]:
    """Return how many points of nDCG@10 each part costs."""
    at = {name: mean_and_error(run.rows[name].values["ndcg10"])[0] for name in (DETECTED, *MODES)}
    return {
        "detector: faces not found": 100.0 - at[DETECTED],
        "descriptor: faces not recognised": at[DETECTED] - at["exact"],
        "set vector alone": at["exact"] - at["set"],
        "one bit per dimension, then 2,000 re-ranked": at["exact"] - at["fast"],
    }


def tables(record: Record) -> list[Table]:
    """Return the measures of each mode, and where the points are lost."""
    columns = [
        Column("ndcg10", "nDCG@10"),
        Column("ndcg30", "nDCG@30"),
        Column("first", "rank of first", lower=True),
        Column("mean_ms", "mean ms", fact=True, digits=2),
    ]
    found = [result_table("End-to-end: composed group photos", record.rows, columns, CAPTION)]
    losses = record.extra.get("losses")
    if losses:
        cells = tuple((part, f"{points:.2f}") for part, points in losses.items())
        found.append(Table("Where nDCG@10 is lost", ("part", "points"), cells))
    return found


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.photos")
