"""How sure a match is: false and missed matches, people who are absent, the order of photos."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.people import LFW_LIKE, LFW_LIKE_TRAIN, virtual_split
from setnet.evaluate.record import Record, Row, Run, fingerprint
from setnet.evaluate.settings import PeopleSettings, experiment, setting
from setnet.evaluate.tables import Column, Table, result_table
from setnet.faces.settings import load_calibration
from setnet.heads import unit
from setnet.library.person_matcher import BackgroundSample, PersonMatcher, person_vector
from setnet.library.score_calibration import ScoreCalibration
from setnet.train import VirtualPeople
from studies.matching_faces import MatchingFaces, faces_of_people, read_matching_faces
from studies.photo_order import (
    CIRCLE,
    Ranked,
    fitted_plain,
    ordered,
    plain_score,
    ranked_queries,
    score_by,
)
from studies.score_fitting import LabelledFaces, Trial, fit_score_calibration, trials

TITLE = "Matches in figures"

Floats = NDArray[np.float32]
EXAMPLES = (1, 2, 3, 5, 10)
LIBRARIES = 10  # of people who look alike
VIRTUAL = 500  # people with several faces, where there are no real ones
CIRCLES = 40  # of people who are in photos together, at most in one library where order is measured
SIZES = (300, 3000)  # faces of these libraries, beside the number given
KINDS = {"1": "1 person", **{str(n): f"{n} people" for n in (2, 3, 4, 5)}}
KINDS |= {"absent": "2, one absent", "groups": "2 groups"}
HALVES = ("training half", "test half")
SITUATIONS = {"3 examples": (3, 0), "3, one wrong": (3, 1), "5 examples": (5, 0), "5, one wrong": (5, 1)}


@dataclass(frozen=True, kw_only=True)
class Settings(PeopleSettings):
    """How sure a match is: false matches and recall of sure and maybe; what examples change."""

    difficulty: float = setting(1.0, "Spread of each virtual person's faces: 1 as on LFW.", counts=False)
    repeats: int = setting(5, "Compare ways to use several examples so often.", minimum=1)
    degraded: Sequence[Path] = setting(
        (), "Descriptors of degraded copies of the same photos; repeatable.", metavar="FILE.npz", counts=False
    )
    constants: Path | None = setting(
        None, "Write the fitted constants here.", metavar="FILE.toml", counts=False
    )
    faces: int = setting(100_000, "Faces in which absent people are searched.", minimum=1)
    trials: int = setting(8000, "People tried per number of examples.", minimum=100)

    def identity(self) -> dict[str, object]:
        """Return what the numbers depend on."""
        degraded = {"degraded": [fingerprint(path) for path in self.degraded]} if self.descriptors else {}
        return super().identity() | degraded


@experiment("matching")
def run(run: Run, settings: Settings) -> None:
    """Fit what similarities mean on one half of the people, and measure on the other what is sure."""
    model = VirtualPeople.load(LFW_LIKE)
    if settings.descriptors is None:
        split = virtual_split(settings.difficulty, settings.seed, VIRTUAL)
        train, test, name = faces_of_people(split.train), faces_of_people(split.test), split.name
    else:
        train, test, name = read_matching_faces(settings.descriptors, settings.degraded, settings.seed)
    # about: by how probabilities fall
    run.total = len(WAYS) + len(EXAMPLES) + 10 * (1 + len(test.degraded)) + 20
    run.say("fitting the constants")
    fitted = fit_score_calibration(
        train.faces,
        ScoreCalibration.of(load_calibration("sface", "match")),
        list(train.degraded.values()),
        seed=settings.seed,
    )
    run.note(world=name, model=fitted.to_dict(), train=_size(train), test=_size(test))
    if settings.constants is not None:
        write_constants(settings.constants, fitted)
    _order(run, train, test, fitted, (VirtualPeople.load(LFW_LIKE_TRAIN), model), settings)
    _ways(run, test, settings)
    _bands(run, test, fitted, settings.trials)
    _absent(run, test, fitted, model, settings)
    _reliability(run, test, fitted, settings.trials)
    run.say("libraries of people who look alike")
    found = lookalike_sets(test.faces, fitted, LIBRARIES, settings.trials, settings.seed)
    for way, facts in found.items():
        run.add(Row(way, {}, {"table": "alike", **facts}))


def write_constants(path: Path, model: ScoreCalibration) -> None:
    """Write a model's constants as a registry of models carries them."""
    lines = [f"{name} = {value:.4g}" for name, value in model.to_dict().items()]
    path.write_text("\n".join(["[calibration.match]", *lines]) + "\n", encoding="utf-8")


def _size(half: MatchingFaces) -> dict[str, int]:
    return {"faces": len(half.faces.descriptors), "people": len(half.faces.people())}


def _plural(count: int) -> str:
    return f"{count} example{'s' * (count > 1)}"


Way = Callable[[Floats, Floats], Floats]  # examples and faces -> the faces' similarities

WAYS: dict[str, Way] = {
    "plain mean": lambda examples, faces: faces @ _mean(examples),
    "weighted mean": lambda examples, faces: faces @ person_vector(examples),
    "nearest example": lambda examples, faces: (faces @ examples.T).max(axis=1),
    "best of mean and nearest": lambda examples, faces: np.maximum(
        faces @ _mean(examples), 0.95 * (faces @ examples.T).max(axis=1)
    ),
    "mean of similarities": lambda examples, faces: faces @ examples.mean(axis=0),
}
RATES = (1e-4, 1e-5)


def _ways(run: Run, test: MatchingFaces, settings: Settings) -> None:
    """Measure each way to use several examples, all right or one wrong."""
    if all(run.has(name) for name in WAYS):
        return
    values: dict[str, dict[str, list[float]]] = {name: {} for name in WAYS}
    for situation, (examples, wrong) in SITUATIONS.items():
        run.say(f"ways to use several examples: {situation}")
        for repeat in range(settings.repeats):
            rng = np.random.default_rng((settings.seed, repeat, examples, wrong))
            found = recalls(test.faces, examples, wrong, settings.trials // settings.repeats, rng)
            for name, numbers in found.items():
                for rate, number in zip(RATES, numbers, strict=True):
                    values[name].setdefault(f"{situation} at {rate:g}", []).append(number)
    for name in WAYS:
        run.add(Row(name, values[name], {"table": "ways"}))


def recalls(
    faces: LabelledFaces, examples: int, wrong: int, trials: int, rng: np.random.Generator
) -> dict[str, list[float]]:
    """Return, for each way, the percentage of own faces found at each of `RATES` of false matches.

    Of a person's examples, so many are `wrong`: faces of somebody else, whose other faces count as non-matches.
    Every trial weighs the same.
    """
    non_matches: dict[str, list[Floats]] = {name: [] for name in WAYS}
    own: dict[str, list[Floats]] = {name: [] for name in WAYS}
    compared = 0
    for known, genuine, others in _mixed_trials(faces, examples, wrong, trials, rng):
        compared += len(others)
        for name, way in WAYS.items():
            far = way(known, faces.descriptors[others])
            non_matches[name].append(far[far > 0.2])
            own[name].append(way(known, faces.descriptors[genuine]))
    return {name: [_recall(own[name], non_matches[name], compared, rate) for rate in RATES] for name in WAYS}


def _mixed_trials(
    faces: LabelledFaces, examples: int, wrong: int, trials: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, NDArray[np.int64], NDArray[np.int64]]]:
    people = faces.people(examples - wrong + 1)
    for _ in range(max(1, trials // len(people))):
        for rows in people:
            mixed = rng.permutation(rows)
            chosen, genuine = mixed[: examples - wrong], mixed[examples - wrong :][:20]
            others = np.flatnonzero(faces.owner != faces.owner[rows[0]])
            odd = rng.choice(others, wrong, replace=False)
            non_matches = np.setdiff1d(others, odd, assume_unique=True)
            yield faces.descriptors[np.concatenate([chosen, odd])], genuine, non_matches


def _recall(own: list[Floats], non_matches: list[Floats], compared: int, rate: float) -> float:
    far = np.concatenate(non_matches)
    count = max(1, round(rate * compared))
    bar = np.partition(far, len(far) - count)[len(far) - count] if count <= len(far) else -1.0
    return float(100.0 * np.mean([np.mean(each >= bar) for each in own]))


def _mean(examples: Floats) -> Floats:
    mean: Floats = unit(examples.mean(axis=0, keepdims=True))[0]
    return mean


def _order(
    run: Run,
    train: MatchingFaces,
    test: MatchingFaces,
    model: ScoreCalibration,
    virtual: tuple[VirtualPeople, VirtualPeople],
    settings: Settings,
) -> None:
    """Measure how photos are ordered on both halves, each source of photos a row; the first half chooses."""
    ways = {
        "score one half where sure": score_by(lambda r: r.sure),
        "score = probability": score_by(lambda r: r.even),
    }
    names = ["photos as they are", *test.degraded]
    if all(run.has(f"{way}, {name}, {half}") for way in ways for name in names for half in HALVES):
        return
    queries = {
        (half, name): _composed(run, f"{half}, {name}", faces, model, others, settings)
        for half, part, others in zip(HALVES, (train, test), virtual, strict=True)
        for name, faces in zip(names, (part.faces, *part.degraded.values()), strict=True)
    }
    plain = fitted_plain(
        [ranked for (half, _), some in queries.items() if half == HALVES[0] for ranked in some]
    )
    ways["one logistic for everybody, fitted for order"] = plain_score(plain)
    run.note(plain={"w": plain.w, "centre": plain.threshold})
    for (half, name), some in queries.items():
        for way, score in ways.items():
            for by_count in (False, True) if way == "score = probability" else (False,):
                values: dict[str, list[float]] = {}
                for ranked in some:
                    values.setdefault(KINDS[ranked.kind], []).append(ordered(ranked, score, by_count))
                label = f"{way}{', number of people first' * by_count}, {name}, {half}"
                run.add(Row(label, values, {"table": "order", "queries": len(some)}))


def _composed(
    run: Run,
    name: str,
    faces: LabelledFaces,
    model: ScoreCalibration,
    virtual: VirtualPeople,
    settings: Settings,
) -> list[Ranked]:
    """Return queries in libraries of several sizes, more of the small ones, for 1, 3 and 10 examples."""
    found: list[Ranked] = []
    fill = partial(_distractors, virtual, seed=settings.seed)
    for size in sorted({min(size, settings.faces) for size in (*SIZES, settings.faces)}):
        run.say(f"order of photos, {name}, {size:,} faces")
        for examples, draw in product((1, 3, 10), range(max(1, SIZES[1] // size))):
            if len(faces.people(examples + 2)) > CIRCLE:
                rng = np.random.default_rng((settings.seed, size, examples, draw))
                found += ranked_queries(faces, model, examples, size, CIRCLES, fill, rng)
    return found


Z = np.arange(3.0, 6.51, 0.1)  # where the shares of non-matches are told, in standard deviations
_BINS = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
_QUALITY = ("size", "score", "sharpness", "yaw", "pitch", "roll")


@dataclass(frozen=True, eq=False)
class Bands:
    """What trials with one number of examples gave.

    Attributes
    ----------
    person, compared, wrong
        By trial: who it was, faces of others compared with them, and those taken for them surely.
    sure, maybe
        Mean thresholds.
    false_maybe
        Share of non-matches that are sure or maybe matches.
    recall_sure, recall_maybe
        Percentage of own faces found, every person weighing the same.
    beyond
        Share of non-matches beyond each of `Z`.
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


def _bands(run: Run, test: MatchingFaces, model: ScoreCalibration, max_trials: int) -> None:
    """Measure each number of examples, all of them together, degraded copies, and wrong labels left in."""
    parts: list[Bands] = []
    for n in EXAMPLES:
        if test.faces.people(n):
            run.say(f"false matches and recall, {_plural(n)}")
            parts.append(bands(test.faces, model, n, max_trials))
            run.add(Row(_plural(n), {}, {"table": "bands", **parts[-1].to_dict()}))
    run.add(Row("all together", {}, {"table": "bands", **false_matches(parts)}))
    for name, faces in {**test.degraded, "labels as they are": test.labelled}.items():
        for n in (1, 3):
            run.say(f"false matches and recall, {name}, {_plural(n)}")
            found = bands(faces, model, n, max_trials // 2)
            run.add(Row(f"{_plural(n)}, {name}", {}, {"table": "bands", **found.to_dict()}))


def bands(faces: LabelledFaces, model: ScoreCalibration, examples: int, max_trials: int) -> Bands:
    """Return false matches and recall of the two bands on faces, searched as one library."""
    person, compared, wrong, guessed, beyond = [], [], [], [], np.zeros(len(Z))
    found: dict[int, list[tuple[float, float]]] = {}
    thresholds = []
    rng = np.random.default_rng((0, examples))
    for trial, known in recognised(faces, model, examples, max_trials, rng, left=0):
        person.append(trial.person)
        compared.append(len(trial.non_matches))
        wrong.append(float((trial.non_matches >= known.sure).sum()))
        guessed.append(float((trial.non_matches >= known.maybe).sum()))
        z = (trial.non_matches - known.non_matches.mean) / known.non_matches.spread
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
    """Return how many non-matches of a million were taken for sure, of all parts, with its 95 % bound.

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


def clopper_pearson(count: float, trials: float, confidence: float = 0.95) -> float:
    """Return the upper bound of a rate after `count` events in independent trials (Clopper, Pearson 1934).

    >>> round(clopper_pearson(0, 1_000_000) * 1e6, 2)
    3.0
    """
    from scipy.special import (
        betaincinv,  # the quantile of a beta distribution; scipy.stats takes seconds to load
    )

    return float(betaincinv(count + 1, max(trials - count, 1e-9), confidence))


def by_person(
    counts: NDArray[np.floating],
    trials: NDArray[np.floating],
    person: NDArray[np.int64],
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> float:
    """Return the upper bound of a rate when what concerns one person comes together: people are drawn again.

    A bootstrap of people; where none has an event it says 0, and `clopper_pearson` says more.
    """
    _, owner = np.unique(person, return_inverse=True)
    events, tries = np.bincount(owner, counts), np.bincount(owner, trials)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(events), (draws, len(events)))
    return float(np.quantile(events[drawn].sum(axis=1) / tries[drawn].sum(axis=1), confidence))


def _absent(
    run: Run, test: MatchingFaces, model: ScoreCalibration, virtual: VirtualPeople, settings: Settings
) -> None:
    distractors = _distractors(virtual, max(0, settings.faces - len(test.faces.descriptors)), settings.seed)
    for n in (1, 3, 10):
        if test.faces.people(n + 1):
            run.say(f"absent people, {n} examples")
            found = absent(test.faces, distractors, model, n, min(settings.trials, 1500))
            run.add(Row(f"absent, {_plural(n)}", {}, {"table": "absent", **found}))


def _distractors(virtual: VirtualPeople, count: int, seed: int) -> Floats:
    """Return faces of virtual people, two of each."""
    rng = np.random.default_rng((seed, 77))
    crowd = virtual.people(rng, max(1, -(-count // 2)))
    return virtual.faces(rng, crowd, np.arange(count) // 2)


def absent(
    faces: LabelledFaces, distractors: Floats, model: ScoreCalibration, examples: int, max_trials: int
) -> dict[str, float]:
    """Return how often the answer for somebody who is not in a library has no sure match, in percent.

    The library has the faces of everybody else and the distractors.
    """
    everything = np.concatenate([faces.descriptors, distractors])
    rng = np.random.default_rng((1, examples))
    found = []
    for trial, known in recognised(faces, model, examples, max_trials, rng, everything):
        far = np.concatenate([trial.non_matches, distractors @ trial.vector])
        sure, maybe = ((far >= bar).sum() for bar in (known.sure, known.maybe))
        real, own = ((some >= known.sure).mean() for some in (trial.non_matches, trial.genuine))
        found.append((sure == 0, sure, maybe, real, own))
    empty, false, guesses, real, own = np.mean(np.array(found, np.float64), axis=0).tolist()
    return {
        "faces": len(everything),
        "searches": len(found),
        "empty": 100.0 * empty,
        "false": false,
        "guesses": guesses,
        "real": len(everything) * real,
        "recall_sure": 100.0 * own,
    }


def _reliability(run: Run, test: MatchingFaces, model: ScoreCalibration, max_trials: int) -> None:
    for n in (1, 3):
        run.say(f"probabilities, {n} examples")
        for found in reliability(test.faces, model, n, max_trials // 4):
            name = f"{_plural(n)}, {found['low']:g} to {found['high']:g}"
            run.add(Row(name, {}, {"table": "reliability", **found}))


def reliability(
    faces: LabelledFaces, model: ScoreCalibration, examples: int, max_trials: int
) -> list[dict[str, float]]:
    """Return, for bins of the probability given, how many matches there are and how many are right."""
    given: list[float] = []
    right: list[bool] = []
    rng = np.random.default_rng((0, examples))
    for trial, known in recognised(faces, model, examples, max_trials, rng):
        for similarity, row in zip(trial.genuine.tolist(), trial.genuine_rows.tolist(), strict=True):
            if similarity >= known.maybe:
                given.append(known.probability(similarity, _quality(faces, row)))
                right.append(True)
        for similarity in trial.non_matches[trial.non_matches >= known.maybe].tolist():
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


def recognised(
    faces: LabelledFaces,
    model: ScoreCalibration,
    examples: int,
    max_trials: int,
    rng: np.random.Generator,
    library: Floats | None = None,
    left: int = 1,
) -> Iterator[tuple[Trial, PersonMatcher]]:
    """Yield trials on faces with the matcher that a library of them, or another, makes of the examples."""
    background = BackgroundSample.of_faces(faces.descriptors if library is None else library, model)
    for trial in trials(faces, examples, max_trials, rng, left=left):
        non_matches = background.non_match_scores(trial.vector, examples, model)
        yield trial, PersonMatcher.of(model, trial.vector, examples, non_matches, background.faces)


DIRECTIONS = 10
_MIN_PEOPLE = 50
THRESHOLDS = ("measured in each library", "the same for all libraries")


def lookalike_sets(
    faces: LabelledFaces, model: ScoreCalibration, count: int, max_trials: int, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Return false matches and recall in libraries of people near to each other, one example each.

    The people are divided into `count` libraries by k-means of their descriptors.
    """
    from scipy.cluster.vq import kmeans2

    centred = faces.descriptors - faces.descriptors.mean(axis=0)
    axes = np.linalg.svd(centred[:: max(1, len(centred) // 3000)], full_matrices=False)[2][:DIRECTIONS]
    _, library = kmeans2(centred @ axes.T, count, seed=seed, minit="++")
    sums = {way: np.zeros(4) for way in THRESHOLDS}  # compared, falsely sure, false at all, own faces sure
    own = libraries = 0
    for number in range(count):
        part = _some(faces, library == number)
        if len(part.people()) < _MIN_PEOPLE:
            continue
        libraries += 1
        rng = np.random.default_rng((seed, number))
        for trial, known in recognised(part, model, 1, max_trials // count, rng, left=0):
            own += len(trial.genuine)
            fixed = PersonMatcher.of(model, trial.vector, 1, model.non_match_scores(1), known.faces)
            for way, matcher in zip(THRESHOLDS, (known, fixed), strict=True):
                sums[way] += [
                    len(trial.non_matches),
                    (trial.non_matches >= matcher.sure).sum(),
                    (trial.non_matches >= matcher.maybe).sum(),
                    (trial.genuine >= matcher.sure).sum(),
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


def tables(record: Record) -> list[Table]:
    """Return order, what several examples change, the two bands, absent and alike people, probabilities."""
    makers = (_order_table, _ways_table, _bands_table, _absent_table, _alike_table, _reliability_table)
    return [table for table in (make(record) for make in makers) if table.cells]


def _rows(record: Record, table: str) -> list[Row]:
    return [row for row in record.rows if row.facts["table"] == table]


def _order_table(record: Record) -> Table:
    columns = [Column(name, name, digits=2) for name in KINDS.values()]
    sizes = ", ".join(f"{size:,}" for size in (*SIZES, record.settings.get("faces", SIZES[-1])))
    note = (
        "nDCG@10 of photos composed of people who are in photos together, in libraries of "
        f"{sizes} faces, which virtual people fill up, for 1, 3 and 10 examples. An absent person is in no "
        "photo; a group is all faces of a person in the library. Mean ± standard error over queries."
    )
    return result_table("Order: nDCG@10 by the people asked for", _rows(record, "order"), columns, note)


def _ways_table(record: Record) -> Table:
    columns = [Column(f"{situation} at 1e-05", situation, digits=2) for situation in SITUATIONS]
    note = (
        "Percentage of a person's other faces found where one stranger in 100,000 is taken for them. A wrong "
        "example shows somebody else, whose faces count as non-matches. Mean ± standard error over repeats."
    )
    return result_table("Several examples of a person", _rows(record, "ways"), columns, note)


def _bands_table(record: Record) -> Table:
    columns = [
        Column("sure", "sure from", fact=True, digits=3),
        Column("maybe", "maybe from", fact=True, digits=3),
        Column("recall_sure", "sure, %", fact=True),
        Column("recall_maybe", "sure or maybe, %", fact=True),
        Column("false_sure", "false sure per million", fact=True, digits=2),
        Column("bound", "at most (95 %)", fact=True, digits=2),
        Column("false_maybe", "false per 100,000, guesses too", fact=True, digits=2),
        Column("millions", "million comparisons", fact=True),
    ]
    faces = record.extra.get("test", {})
    note = (
        f"{faces.get('people', 0):,} people with {faces.get('faces', 0):,} faces, searched as one library; "
        "thresholds are means, each person has their own. The bound is the greater of Clopper and Pearson's "
        "and a bootstrap of people."
    )
    return result_table("Sure and maybe, on people never seen", _rows(record, "bands"), columns, note)


def _absent_table(record: Record) -> Table:
    columns = [
        Column("faces", "faces", fact=True),
        Column("searches", "searches", fact=True),
        Column("empty", "without a sure match, %", fact=True),
        Column("false", "false sure matches", fact=True, digits=3),
        Column("guesses", "guesses", fact=True),
        Column("real", "expected of real others", fact=True, digits=3),
        Column("recall_sure", "own faces sure, if there, %", fact=True),
    ]
    note = (
        "Searches for people who are not in the library. Beside the faces of the others, it has those of "
        "virtual people, drawn from the statistics of real descriptors, who are less extreme: expected of as "
        "many real non-matches are the false sure matches of the real ones at the same thresholds."
    )
    return result_table("Absent people", _rows(record, "absent"), columns, note)


def _alike_table(record: Record) -> Table:
    columns = [
        Column("libraries", "libraries", fact=True),
        Column("recall_sure", "sure, %", fact=True),
        Column("false_sure", "false sure per million", fact=True, digits=2),
        Column("false_maybe", "false per 100,000, guesses too", fact=True, digits=2),
    ]
    note = (
        "The people tested, divided into libraries of those who look alike, one example each. Somebody else "
        "there is more similar than elsewhere; thresholds that are measured in a library follow."
    )
    rows = _rows(record, "alike")
    return result_table("Libraries of people who look alike: similarity of non-matches", rows, columns, note)


def _reliability_table(record: Record) -> Table:
    columns = [
        Column("matches", "matches", fact=True),
        Column("given", "probability given, %", fact=True, digits=2),
        Column("right", "right, %", fact=True, digits=2),
    ]
    note = "All matches of the people tested, sure and maybe, by the probability that was given to them."
    return result_table("What probabilities are worth", _rows(record, "reliability"), columns, note)


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.matching")
