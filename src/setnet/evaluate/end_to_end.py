"""End-to-end search: composed group photos are indexed and searched by a library, detector included."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setnet.errors import InvalidInputError, PhotoError
from setnet.evaluate.inputs import OnProgress, running
from setnet.evaluate.measures import Measured, ndcg, ranking_measures
from setnet.evaluate.photos import Album, compose_album, read_album
from setnet.evaluate.record import Record, Row, Run, mean_and_error
from setnet.library import Library, QueryPerson

MODES = ("exact", "fast", "set")
DETECTED = "detector only, faces recognised without error"
PICTURES = "lfw"


@dataclass(frozen=True)
class _Query:
    """Two or three people, and the relevance of each photo for them."""

    people: tuple[str, ...]
    relevance: dict[str, int]


def evaluate_end_to_end(
    lfw: Path,
    lists: Path,
    work: Path,
    *,
    count: int = 400,
    queries: int = 60,
    repeats: int = 3,
    seed: int = 0,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Measure search in group photos composed of LFW pictures, and where the points are lost.

    Parameters
    ----------
    lfw, lists
        LFW's folder of identities, and its ``multi_person_photos.json``.
    work
        Folder of the composed photos and their library; made, or used again.
    count
        How many photos to compose.
    queries, repeats, seed, json, progress
        As of `stress`.
    """
    settings = {"count": count, "queries": queries, "repeats": repeats, "seed": seed}
    with running("photos", settings, json, progress, len(MODES) + 1) as run:
        run.say("composing photos")
        album = compose_album(lfw, lists, work, count, seed)
        chosen = _queries(album, queries, seed)
        run.note(
            world=f"{len(album.photos)} group photos composed of LFW pictures of test-half people",
            lfw=str(lfw),
        )
        run.say("indexing photos")
        started = time.monotonic()
        with Library.open_or_create(work / "library") as library:
            if library.index([work / "photos"]).added:
                run.note(indexing_seconds=round(time.monotonic() - started, 1))
            _measure(run, library, album, chosen, _Examples(lfw, album, library), repeats)
        run.note(losses=_losses(run))
    return run.record()


def _measure(
    run: Run, library: Library, album: Album, queries: Sequence[_Query], faces: _Examples, repeats: int
) -> None:
    """Fill ``run`` with a row of the detector alone and a row per mode."""
    found = _found_people(album, library)
    run.note(
        faces_placed=sum(map(len, album.photos.values())),
        faces_found=sum(map(len, found.values())),
        queries=len(queries),
    )
    detected = _detector_values(queries, found, repeats)
    run.add(Row(DETECTED, detected.values, bound=True, draws=detected.draws))
    for mode in MODES:
        if not run.has(mode):
            run.say(mode)
            run.add(_mode_row(mode, queries, library, faces, repeats))


def write_examples(work: Path, out: Path, count: int = 4, seed: int = 0) -> list[tuple[Path, float]]:
    """Write contact sheets of the best five photos for some queries; return them with their nDCG@5."""
    from setnet.library import contact_sheet

    album = read_album(work)
    note = work / PICTURES
    if not note.is_file():
        raise InvalidInputError(f"{work} was not made by `setnet evaluate photos`: run it first")
    lfw = Path(note.read_text(encoding="utf-8"))
    written = []
    out.mkdir(parents=True, exist_ok=True)
    with Library.open(work / "library") as library:
        faces = _Examples(lfw, album, library)
        # queries with most full matches show most
        candidates = _queries(album, 500, seed)
        candidates.sort(key=lambda q: -list(q.relevance.values()).count(len(q.people)))
        for number, query in enumerate(candidates[:count], 1):
            answer = library.find(faces.people(query, 0), k=5, mode="fast")
            ranked = [*(query.relevance.get(hit.path.name, 0) for hit in answer.hits), 0]
            quality = float(ndcg(ranked, [*query.relevance.values()], 5))
            path = out / f"example-{number}.png"
            title = f"{' + '.join(name.replace('_', ' ') for name in query.people)}   nDCG@5 {quality:.1f}"
            contact_sheet(answer, path, title=title)
            written.append((path, quality))
    return written


class _Examples:
    """Query faces: looked up once per picture, by the library's own detector and descriptor."""

    def __init__(self, lfw: Path, album: Album, library: Library) -> None:
        self.lfw, self.album, self.library = lfw, album, library
        self._known: dict[str, QueryPerson | None] = {}
        (album.folder / PICTURES).write_text(str(lfw.absolute()), encoding="utf-8")

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
                    self._known[file] = QueryPerson(shown, found.descriptors, found.picture)
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
            answer = library.find(faces.people(query, repeat), k=30, mode=mode)
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
