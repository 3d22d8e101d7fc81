"""How well photos are ordered: libraries composed of people who are in photos together, and their queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.engine import greedy_matches
from setnet.evaluate.measures import ndcg
from setnet.heads import Logistic
from setnet.library.person_matcher import BackgroundSample, PersonMatcher, person_vector
from setnet.library.score_calibration import ScoreCalibration
from studies.score_fitting import LabelledFaces

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Wide = NDArray[np.float64]
Filler = Callable[[int], Floats]  # so many faces of people whom no query names
Score = Callable[["Ranked"], Wide]  # -> (photos, people): what each person adds to a photo's score

CIRCLE = 5  # people who are in photos with each other
_MAX_OWN = 10  # faces of one person in a library
_MEMBERS = (0.25, 0.3, 0.25, 0.12, 0.08)  # shares of photos with 1 to 5 people of a circle
_OTHERS = (0.4, 0.3, 0.2, 0.1)  # shares of these photos with 0 to 3 others beside them
_CONTENDERS = 300  # photos without anybody of a query that are ranked: those with the most similar faces
# Of the plain logistic that is fitted for order: one centre and one slope for everybody.
_CENTRES = np.arange(0.2, 0.56, 0.025)
_SLOPES = (10.0, 15.0, 20.0, 30.0, 45.0)


@dataclass(frozen=True, eq=False)
class Ranked:
    """A query and the photos that may be among its first.

    Attributes
    ----------
    kind
        How many people are asked for, and whether one of them is absent or all are known by groups.
    similarity
        (photos, people): of the face that each person is matched with, one face for one person.
    relevance
        (photos,): how many of the people are there.
    matchers
        What recognises each person.
    """

    kind: str
    similarity: Wide
    relevance: Rows
    matchers: list[PersonMatcher]


@dataclass(frozen=True, eq=False)
class _Library:
    faces: Floats
    photo: Rows  # rising
    owner: Rows  # -1 for somebody whom no query names
    circles: list[list[tuple[int, Rows]]]  # people: owner, rows of their examples
    absent: list[tuple[int, Rows]]


def ranked_queries(
    faces: LabelledFaces,
    model: ScoreCalibration,
    examples: int,
    size: int,
    circles: int,
    fill: Filler,
    rng: np.random.Generator,
) -> Iterator[Ranked]:
    """Yield queries for 1 to 5 people of each circle in a composed library of `size` faces.

    Beside them there are queries with one person who is in no photo of the library, and queries for people
    who are known by all their faces in it, as groups are.
    """
    library = _composed(faces, examples, size, circles, fill, rng)
    background = BackgroundSample.of_faces(library.faces, model)
    shown = faces.descriptors if faces.shown is None else faces.shown
    starts = np.flatnonzero(np.diff(library.photo, prepend=-1))

    def matcher(rows: Floats) -> PersonMatcher:
        vector = person_vector(rows)
        non_matches = background.non_match_scores(vector, len(rows), model)
        return PersonMatcher.of(model, vector, len(rows), non_matches, background.faces)

    for kind, people, is_group in _asked(library, rng):
        rows = [library.faces[library.owner == o] if is_group else shown[found] for o, found in people]
        known = [matcher(each) for each in rows]
        yield _ranked(kind, library, starts, known, [owner for owner, _ in people])


def score_by(centre: Callable[[PersonMatcher], float]) -> Score:
    """Return the score that is one half at a similarity of each person's own."""

    def score(ranked: Ranked) -> Wide:
        w = min(known.steepness for known in ranked.matchers)
        centres = np.array([centre(known) for known in ranked.matchers])
        return Logistic(w, 0.0).probability(ranked.similarity - centres)

    return score


def plain_score(logistic: Logistic) -> Score:
    """Return the score by one logistic for everybody."""
    return lambda ranked: logistic.probability(ranked.similarity)


def fitted_plain(queries: Sequence[Ranked]) -> Logistic:
    """Return the one logistic for everybody that orders photos best, over queries for 2 to 5 people."""
    several = [ranked for ranked in queries if ranked.kind in "2345"]

    def quality(logistic: Logistic) -> float:
        return float(np.mean([ordered(ranked, plain_score(logistic)) for ranked in several]))

    choices = [Logistic(w, float(-w * centre)) for w in _SLOPES for centre in _CENTRES]
    return max(choices, key=quality)


def ordered(ranked: Ranked, score: Score, by_count: bool = False) -> float:
    """Return nDCG@10 of a query's photos in order of their score.

    The score is the expected number of people who are there; with `by_count`, that of people who are rather
    there than not comes first.
    """
    shares = score(ranked)
    total = shares.sum(axis=1)
    if by_count:
        total = total + shares.shape[1] * (shares >= 0.5).sum(axis=1)
    order = np.argsort(-total, kind="stable")  # equal scores stay in the order of photos, which says nothing
    return float(ndcg(ranked.relevance[order], ranked.relevance, 10))


def _composed(
    faces: LabelledFaces, examples: int, size: int, circles: int, fill: Filler, rng: np.random.Generator
) -> _Library:
    able = faces.people(examples + 2)
    order = [able[i] for i in rng.permutation(len(able))]
    circles = max(1, min(circles, len(order) // (CIRCLE + 1)))
    absent = [
        (int(faces.owner[rows[0]]), rng.permutation(rows)[:examples])
        for rows in order[CIRCLE * circles :][:20]
    ]
    named = {owner for owner, _ in absent}
    singles = [int(rows[0]) for rows in faces.people(1) if len(rows) == 1]
    others = rng.permutation(singles).tolist()
    photos: list[list[int]] = []
    chosen = []
    for number in range(circles):
        if sum(map(len, photos)) > 0.6 * size:
            break
        people = [rng.permutation(rows) for rows in order[CIRCLE * number : CIRCLE * (number + 1)]]
        left = [rows[examples : examples + _MAX_OWN].tolist() for rows in people]
        while any(left):
            there = [rows for rows in left if rows]
            count = min(len(there), 1 + int(rng.choice(len(_MEMBERS), p=_MEMBERS)))
            photo = [there[i].pop() for i in rng.choice(len(there), count, replace=False)]
            beside = int(rng.choice(len(_OTHERS), p=_OTHERS))
            photos.append([*photo, *(others.pop() for _ in range(min(beside, len(others))))])
        chosen.append([(int(faces.owner[rows[0]]), rows[:examples]) for rows in people])
        named |= {owner for owner, _ in chosen[-1]}
    shown = np.array([row for photo in photos for row in photo])
    room = max(0, size - len(shown))
    is_other = ~np.isin(faces.owner, [*named, *faces.owner[shown].tolist()])
    rest = rng.permutation(np.flatnonzero(is_other))[:room]
    rows = np.concatenate([shown, rest])
    filled = fill(room - len(rest))
    sizes = [len(p) for p in photos]
    alone = np.repeat(np.arange(room), rng.integers(1, 5, room))[:room] + len(photos)
    owner = np.where(np.isin(faces.owner[rows], list(named)), faces.owner[rows], -1)
    return _Library(
        np.concatenate([faces.descriptors[rows], filled]),
        np.concatenate([np.repeat(np.arange(len(photos)), sizes), alone[: len(rest) + len(filled)]]),
        np.concatenate([owner, np.full(len(filled), -1)]),
        chosen,
        absent,
    )


def _asked(library: _Library, rng: np.random.Generator) -> Iterator[tuple[str, list[tuple[int, Rows]], bool]]:
    for circle in library.circles:
        for count in range(1, CIRCLE + 1):
            yield str(count), [circle[i] for i in rng.choice(CIRCLE, count, replace=False)], False
        two = [circle[i] for i in rng.choice(CIRCLE, 2, replace=False)]
        yield "groups", two, True
        if library.absent:
            yield "absent", [two[0], library.absent[int(rng.integers(len(library.absent)))]], False


def _ranked(
    kind: str, library: _Library, starts: Rows, known: list[PersonMatcher], owners: Sequence[int]
) -> Ranked:
    centres = np.array([each.even for each in known])
    compared = (library.faces @ np.stack([each.vector for each in known]).T).astype(np.float64)
    there = np.stack([np.maximum.reduceat(library.owner == owner, starts) for owner in owners])
    relevance = there.sum(axis=0).astype(np.int64)
    best = np.maximum.reduceat((compared - centres).max(axis=1), starts)
    least = np.sort(best)[-min(_CONTENDERS, len(best))]
    photos = np.flatnonzero((relevance > 0) | (best >= least))
    ends = np.append(starts[1:], len(compared))
    width = int((ends[photos] - starts[photos]).max())
    places = starts[photos][:, None] + np.arange(width)
    is_face = places < ends[photos][:, None]
    table = np.where(is_face[..., None], compared[np.minimum(places, len(compared) - 1)], -1e3)
    element = greedy_matches((table - centres).transpose(0, 2, 1))
    similarity = np.take_along_axis(table.transpose(0, 2, 1), np.maximum(element, 0)[..., None], axis=2)[
        ..., 0
    ]
    return Ranked(kind, np.where(element < 0, -1e3, similarity), relevance[photos], known)
