"""The trials behind `evaluate matching`: faces, libraries, measures, bounds, orders of photos."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.engine import greedy_matches
from setnet.errors import InvalidInputError
from setnet.evaluate.measures import ndcg
from setnet.evaluate.people import LabelledPeople, corrected, divided, photo_key, read_people
from setnet.heads import Logistic
from setnet.library.calibration import LabelledFaces, Trial, trials
from setnet.library.descriptor_files import refuse_two_models
from setnet.library.person_matcher import Cohort, Recogniser, person_vector
from setnet.library.score_calibration import MatchModel


@dataclass(frozen=True, eq=False)
class MatchingFaces:
    """Faces of people, as their photos are and in degraded copies; `labelled` has wrong labels too."""

    faces: LabelledFaces
    degraded: dict[str, LabelledFaces]
    labelled: LabelledFaces


@dataclass(frozen=True, eq=False)
class _File:
    people: LabelledPeople
    keys: list[str]
    quality: NDArray[np.float32]
    right: NDArray[np.bool_]


def read_matching_faces(
    path: Path, degraded: Sequence[Path] = (), seed: int = 0
) -> tuple[MatchingFaces, MatchingFaces, str]:
    """Return faces to fit on, faces to test on, and in words what they are."""
    refuse_two_models([path, *degraded])
    plain = _read(path)
    worse = {copy.stem: _read(copy) for copy in degraded}
    halves = divided(plain.people, path.name, seed)
    train, test = (
        _half(plain, worse, set(half.labels.tolist()) - {""}) for half in (halves.train, halves.test)
    )
    return train, test, halves.name


def faces_of_people(people: LabelledPeople) -> MatchingFaces:
    """Return people who have descriptors only; everybody unknown is a person of their own."""
    faces = LabelledFaces(people.descriptors, _owners(people.labels))
    return MatchingFaces(faces, {}, faces)


def _read(path: Path) -> _File:
    people = read_people(path)
    n = len(people.labels)
    with np.load(path, allow_pickle=False) as file:
        paths = file["paths"].tolist() if "paths" in file else None
        quality = file["quality"] if "quality" in file else np.full((n, 6), np.nan)
    if quality.shape != (n, 6) or (paths is not None and len(paths) != n):
        raise InvalidInputError(f"{path}: 'paths' or 'quality' does not fit its {n} descriptors")
    _, right = corrected(people.labels, paths)
    keys = [str(i) for i in range(n)] if paths is None else [photo_key(p) for p in paths]
    return _File(people, keys, quality.astype(np.float32), right)


def _half(plain: _File, worse: dict[str, _File], names: set[str]) -> MatchingFaces:
    rows = np.flatnonzero(np.isin(plain.people.labels, sorted(names)))
    labelled = _faces(plain, rows, plain.people.labels)
    labels, _ = corrected(plain.people.labels, None)
    rows = rows[plain.right[rows]]
    faces = _faces(plain, rows, labels)
    degraded = {}
    for name, copy in worse.items():
        place = {key: i for i, key in enumerate(copy.keys)}
        both = [(row, place[plain.keys[row]]) for row in rows.tolist() if plain.keys[row] in place]
        if not both:
            raise InvalidInputError(f"{name}: no photo of it is a copy of one of the descriptor file")
        here, there = (np.array(side) for side in zip(*both, strict=True))
        of_copy = _faces(copy, there, copy.people.labels)
        degraded[name] = replace(of_copy, owner=_owners(labels[here]), shown=plain.people.descriptors[here])
    return MatchingFaces(faces, degraded, labelled)


def _faces(file: _File, rows: NDArray[np.int64], labels: NDArray[np.str_]) -> LabelledFaces:
    return LabelledFaces(file.people.descriptors[rows], _owners(labels[rows]), file.quality[rows])


def _owners(labels: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return a number for each person; an empty label is a person of its own."""
    unique = np.array([label or f"\0{i}" for i, label in enumerate(labels.tolist())])
    return np.unique(unique, return_inverse=True)[1].astype(np.int64)


DIRECTIONS = 10
_LEAST_PEOPLE = 50
WAYS = ("measured in each library", "the same for all libraries")


def alike_libraries(
    faces: LabelledFaces, model: MatchModel, count: int, most: int, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Return false matches and recall in libraries of people near to each other, one example each.

    The people are divided into `count` libraries by k-means of their descriptors.
    """
    from scipy.cluster.vq import kmeans2

    centred = faces.descriptors - faces.descriptors.mean(axis=0)
    axes = np.linalg.svd(centred[:: max(1, len(centred) // 3000)], full_matrices=False)[2][:DIRECTIONS]
    _, library = kmeans2(centred @ axes.T, count, seed=seed, minit="++")
    sums = {way: np.zeros(4) for way in WAYS}  # compared, falsely sure, false at all, own faces sure
    own = libraries = 0
    for number in range(count):
        part = _some(faces, library == number)
        if len(part.people()) < _LEAST_PEOPLE:
            continue
        libraries += 1
        cohort = Cohort.of_faces(part.descriptors, model)
        for trial in trials(part, 1, most // count, np.random.default_rng((seed, number)), left=0):
            own += len(trial.genuine)
            here = cohort.strangers(trial.vector, 1, model)
            for way, strangers in zip(WAYS, (here, model.strangers_to(1)), strict=True):
                known = Recogniser.of(model, trial.vector, 1, strangers, cohort.faces)
                sums[way] += [
                    len(trial.strangers),
                    (trial.strangers >= known.sure).sum(),
                    (trial.strangers >= known.maybe).sum(),
                    (trial.genuine >= known.sure).sum(),
                ]
    return {
        way: {
            "libraries": libraries,
            "false_sure": float(1e6 * wrong / compared),
            "false_maybe": float(1e5 * guessed / compared),
            "recall_sure": float(100.0 * found / max(own, 1)),
        }
        for way, (compared, wrong, guessed, found) in sums.items()
        if compared
    }


def _some(faces: LabelledFaces, which: NDArray[np.bool_]) -> LabelledFaces:
    return LabelledFaces(faces.descriptors[which], faces.owner[which])


def clopper_pearson(count: float, trials: float, confidence: float = 0.95) -> float:
    """Return the upper bound of a rate after `count` events in independent trials (Clopper, Pearson 1934).

    >>> round(clopper_pearson(0, 1_000_000) * 1e6, 2)
    3.0
    """
    from scipy.stats import beta

    return float(beta.ppf(confidence, count + 1, max(trials - count, 1e-9)))


def by_person(
    counts: NDArray[np.floating],
    trials: NDArray[np.floating],
    person: NDArray[np.int64],
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> float:
    """Return the upper bound of a rate when what concerns one person comes together: people are drawn anew.

    A bootstrap of people; where none has an event it says 0, and `clopper_pearson` says more.
    """
    _, owner = np.unique(person, return_inverse=True)
    events, tries = np.bincount(owner, counts), np.bincount(owner, trials)
    rng = np.random.default_rng(seed)
    rates = []
    for _ in range(draws):
        drawn = rng.integers(0, len(events), len(events))
        rates.append(events[drawn].sum() / tries[drawn].sum())
    return float(np.quantile(rates, confidence))


Z = np.arange(3.0, 6.51, 0.1)  # where strangers' shares are told, in standard deviations
_BINS = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
_QUALITY = ("size", "score", "sharpness", "yaw", "pitch", "roll")


@dataclass(frozen=True, eq=False)
class Bands:
    """What trials with one number of examples gave.

    Attributes
    ----------
    person, compared, wrong
        By trial: who it was, strangers compared with them, and those taken for them surely.
    sure, maybe
        Mean thresholds.
    false_maybe
        Share of strangers who are sure or maybe matches.
    recall_sure, recall_maybe
        Percentage of own faces found, every person weighing the same.
    beyond
        Share of strangers beyond each of `Z`.
    """

    examples: int
    person: NDArray[np.int64]
    compared: NDArray[np.float64]
    wrong: NDArray[np.float64]
    sure: float
    maybe: float
    false_maybe: float
    recall_sure: float
    recall_maybe: float
    beyond: NDArray[np.float64]

    def to_dict(self) -> dict[str, object]:
        """Return the numbers as a row's facts."""
        return {
            "examples": self.examples,
            "trials": len(self.person),
            **false_matches([self]),
            "sure": self.sure,
            "maybe": self.maybe,
            "false_maybe": self.false_maybe * 1e5,
            "recall_sure": self.recall_sure,
            "recall_maybe": self.recall_maybe,
            "curve": {"z": Z.tolist(), "seen": self.beyond.tolist()},
        }


def recognised(
    faces: LabelledFaces, model: MatchModel, examples: int, most: int, seed: int = 0, left: int = 1
) -> Iterator[tuple[Trial, Recogniser]]:
    """Yield trials on faces with the recogniser that a library of these faces would make of the examples."""
    rng = np.random.default_rng((seed, examples))
    cohort = Cohort.of_faces(faces.descriptors, model)
    for trial in trials(faces, examples, most, rng, left=left):
        strangers = cohort.strangers(trial.vector, examples, model)
        yield trial, Recogniser.of(model, trial.vector, examples, strangers, cohort.faces)


def bands(faces: LabelledFaces, model: MatchModel, examples: int, most: int, seed: int = 0) -> Bands:
    """Return false matches and recall of the two bands on faces, searched as one library."""
    person, compared, wrong, guessed, beyond = [], [], [], [], np.zeros(len(Z))
    found: dict[int, list[tuple[float, float]]] = {}
    thresholds = []
    for trial, known in recognised(faces, model, examples, most, seed, left=0):
        person.append(trial.person)
        compared.append(len(trial.strangers))
        wrong.append(float((trial.strangers >= known.sure).sum()))
        guessed.append(float((trial.strangers >= known.maybe).sum()))
        z = (trial.strangers - known.strangers.mean) / known.strangers.spread
        beyond += (z[z > Z[0]][:, None] >= Z).sum(axis=0)
        if len(trial.genuine):
            both = float(np.mean(trial.genuine >= known.sure)), float(np.mean(trial.genuine >= known.maybe))
            found.setdefault(trial.person, []).append(both)
        thresholds.append((known.sure, known.maybe))
    recall = 100.0 * np.mean([np.mean(each, axis=0) for each in found.values()], axis=0)
    sure, maybe = np.mean(thresholds, axis=0).tolist()
    total = float(np.sum(compared))
    return Bands(
        examples, np.array(person), np.array(compared, np.float64), np.array(wrong), sure, maybe,
        float(np.sum(guessed)) / total, float(recall[0]), float(recall[1]), beyond / total,
    )  # fmt: skip


def false_matches(parts: Sequence[Bands]) -> dict[str, float]:
    """Return how many strangers of a million were taken for sure, of all parts, with its 95 % bound.

    The bound is the greater of two: that of a bootstrap of people, and Clopper and Pearson's with every
    comparison of a person and a face counted once, however often the person was tried.
    """
    person, compared, wrong = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("person", "compared", "wrong")
    )
    rate = float(wrong.sum() / compared.sum())
    distinct = sum(
        float(part.compared.sum()) * len(set(part.person.tolist())) / len(part.person) for part in parts
    )
    bound = max(clopper_pearson(rate * distinct, distinct), by_person(wrong, compared, person))
    return {"millions": float(compared.sum()) / 1e6, "false_sure": 1e6 * rate, "bound": 1e6 * bound}


def reliability(faces: LabelledFaces, model: MatchModel, examples: int, most: int) -> list[dict[str, float]]:
    """Return, for bins of the probability given, how many matches there are and how many are right."""
    given: list[float] = []
    right: list[bool] = []
    for trial, known in recognised(faces, model, examples, most):
        for similarity, row in zip(trial.genuine.tolist(), trial.genuine_rows.tolist(), strict=True):
            if similarity >= known.maybe:
                given.append(known.probability(similarity, _quality(faces, row)))
                right.append(True)
        for similarity in trial.strangers[trial.strangers >= known.maybe].tolist():
            given.append(known.probability(similarity))
            right.append(False)
    probability, is_right = np.array(given), np.array(right)
    rows = []
    for low, high in pairwise(_BINS):
        here = (probability >= low) & ((probability < high) | (high == 1.0))
        if here.any():
            rows.append(
                {
                    "low": low,
                    "high": high,
                    "matches": int(here.sum()),
                    "given": 100.0 * float(probability[here].mean()),
                    "right": 100.0 * float(is_right[here].mean()),
                }
            )
    return rows


def _quality(faces: LabelledFaces, row: int) -> dict[str, float] | None:
    if faces.quality is None or not np.isfinite(faces.quality[row]).all():
        return None
    return dict(zip(_QUALITY, faces.quality[row].tolist(), strict=True))


def absent(
    faces: LabelledFaces, distractors: NDArray[np.float32], model: MatchModel, examples: int, most: int
) -> dict[str, float]:
    """Return how often the answer for somebody who is not in a library has no sure match, in percent.

    The library has the faces of everybody else and the distractors.
    """
    everything = np.concatenate([faces.descriptors, distractors])
    cohort = Cohort.of_faces(everything, model)
    rng = np.random.default_rng((1, examples))
    sure: list[int] = []
    maybe: list[int] = []
    real: list[float] = []
    own: list[float] = []
    for trial in trials(faces, examples, most, rng):
        strangers = cohort.strangers(trial.vector, examples, model)
        known = Recogniser.of(model, trial.vector, examples, strangers, cohort.faces)
        far = np.concatenate([trial.strangers, distractors @ trial.vector])
        sure.append(int((far >= known.sure).sum()))
        maybe.append(int((far >= known.maybe).sum()))
        real.append(float((trial.strangers >= known.sure).mean()))
        own.append(float((trial.genuine >= known.sure).mean()))
    return {
        "faces": len(everything),
        "searches": len(sure),
        "empty": 100.0 * float(np.mean(np.array(sure) == 0)),
        "false": float(np.mean(sure)),
        "guesses": float(np.mean(maybe)),
        "real": len(everything) * float(np.mean(real)),
        "recall_sure": 100.0 * float(np.mean(own)),
    }


Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Wide = NDArray[np.float64]
Filler = Callable[[int], Floats]  # so many faces of people whom no query names
Score = Callable[["Ranked"], Wide]  # -> (photos, people): what each person adds to a photo's score

CIRCLE = 5  # people who are in photos with each other
_MOST_OWN = 10  # faces of one person in a library
_MEMBERS = (0.25, 0.3, 0.25, 0.12, 0.08)  # shares of photos with 1 to 5 people of a circle
_STRANGERS = (0.4, 0.3, 0.2, 0.1)  # shares of these photos with 0 to 3 strangers beside them
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
    recognisers
        What recognises each person.
    """

    kind: str
    similarity: Wide
    relevance: Rows
    recognisers: list[Recogniser]


@dataclass(frozen=True, eq=False)
class _Library:
    faces: Floats
    photo: Rows  # rising
    owner: Rows  # -1 for somebody whom no query names
    circles: list[list[tuple[int, Rows]]]  # people: owner, rows of their examples
    absent: list[tuple[int, Rows]]


def ranked_queries(
    faces: LabelledFaces,
    model: MatchModel,
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
    cohort = Cohort.of_faces(library.faces, model)
    shown = faces.descriptors if faces.shown is None else faces.shown
    starts = np.flatnonzero(np.diff(library.photo, prepend=-1))

    def recogniser(rows: Floats) -> Recogniser:
        vector = person_vector(rows)
        strangers = cohort.strangers(vector, len(rows), model)
        return Recogniser.of(model, vector, len(rows), strangers, cohort.faces)

    for kind, people, is_group in _asked(library, rng):
        rows = [library.faces[library.owner == o] if is_group else shown[found] for o, found in people]
        known = [recogniser(each) for each in rows]
        yield _ranked(kind, library, starts, known, [owner for owner, _ in people])


def score_by(centre: Callable[[Recogniser], float]) -> Score:
    """Return the score that is one half at a similarity of each person's own."""

    def score(ranked: Ranked) -> Wide:
        w = min(known.steepness for known in ranked.recognisers)
        centres = np.array([centre(known) for known in ranked.recognisers])
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
    strangers = [int(rows[0]) for rows in faces.people(1) if len(rows) == 1]
    others = rng.permutation(strangers).tolist()
    photos: list[list[int]] = []
    chosen = []
    for number in range(circles):
        if sum(map(len, photos)) > 0.6 * size:
            break
        people = [rng.permutation(rows) for rows in order[CIRCLE * number : CIRCLE * (number + 1)]]
        left = [rows[examples : examples + _MOST_OWN].tolist() for rows in people]
        while any(left):
            there = [rows for rows in left if rows]
            count = min(len(there), 1 + int(rng.choice(len(_MEMBERS), p=_MEMBERS)))
            photo = [there[i].pop() for i in rng.choice(len(there), count, replace=False)]
            beside = int(rng.choice(len(_STRANGERS), p=_STRANGERS))
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
    kind: str, library: _Library, starts: Rows, known: list[Recogniser], owners: Sequence[int]
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
