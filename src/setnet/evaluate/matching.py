"""How sure a match is: false and missed matches, people who are absent, the order of photos."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.inputs import OnProgress, running
from setnet.evaluate.match_trials import (
    CIRCLE,
    Bands,
    MatchingFaces,
    Ranked,
    absent,
    alike_libraries,
    bands,
    faces_of_people,
    false_matches,
    fitted_plain,
    ordered,
    plain_score,
    ranked_queries,
    read_matching_faces,
    reliability,
    score_by,
)
from setnet.evaluate.people import LFW_LIKE, LFW_LIKE_TRAIN, virtual_halves
from setnet.evaluate.record import Record, Row, Run, fingerprinted
from setnet.evaluate.retrieval import RATES, WAYS, recalls
from setnet.faces.settings import load_calibration
from setnet.library.calibration import LabelledFaces, fit_match_model
from setnet.library.score_calibration import MatchModel
from setnet.train import VirtualPeople

EXAMPLES = (1, 2, 3, 5, 10)
LIBRARIES = 10  # of people who look alike
VIRTUAL = 500  # people with several faces, where there are no real ones
CIRCLES = 40  # of people who are in photos together, at most in one library where order is measured
SIZES = (300, 3000)  # faces of these libraries, beside the number given
KINDS = {"1": "1 person", **{str(n): f"{n} people" for n in (2, 3, 4, 5)}}
KINDS |= {"absent": "2, one absent", "groups": "2 groups"}
HALVES = ("training half", "test half")
SITUATIONS = {"3 examples": (3, 0), "3, one wrong": (3, 1), "5 examples": (5, 0), "5, one wrong": (5, 1)}


def evaluate_matching(
    descriptors: Path | None = None,
    *,
    degraded: Sequence[Path] | None = None,
    people: Path | None = None,
    difficulty: float = 1.0,
    faces: int = 100_000,
    trials: int = 8000,
    repeats: int = 5,
    seed: int = 0,
    constants: Path | None = None,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Fit what similarities mean on one half of the people, and measure on the other what is sure.

    Parameters
    ----------
    descriptors, people, difficulty
        Whose faces; see `Inputs`. Virtual people by default.
    degraded
        Descriptor files of worse copies of the same photos: they tell what the quality of a face costs.
    faces
        Size of the library that absent people are searched in; virtual people fill it up.
    trials
        People tried for each number of examples, about.
    repeats
        How often the ways of using several examples are compared, with other examples each time.
    seed
        Everything random follows from it.
    constants
        Write the fitted constants to this TOML file.
    json, progress
        As in `stress`.
    """
    settings: dict[str, object] = {"seed": seed, "faces": faces, "trials": trials, "repeats": repeats}
    model = VirtualPeople.load(people or LFW_LIKE)
    if descriptors is None:
        halves = virtual_halves(people, difficulty, seed, VIRTUAL)
        train, test, name = faces_of_people(halves.train), faces_of_people(halves.test), halves.name
        settings |= {
            "people": "virtual" if people is None else fingerprinted(people),
            "difficulty": difficulty,
        }
    else:
        train, test, name = read_matching_faces(descriptors, degraded or (), seed)
        settings["descriptors"] = fingerprinted(descriptors)
        settings["degraded"] = [fingerprinted(path) for path in degraded or ()]
    total = len(WAYS) + len(EXAMPLES) + 10 * (1 + len(test.degraded)) + 20  # about: by how probabilities fall
    with running("matching", settings, json, progress, total) as run:
        run.say("fitting the constants")
        fitted = fit_match_model(
            train.faces,
            MatchModel.of(load_calibration("sface", "match")),
            list(train.degraded.values()),
            seed=seed,
        )
        run.note(world=name, model=fitted.to_dict(), train=_size(train), test=_size(test))
        if constants is not None:
            write_constants(constants, fitted)
        _order(run, train, test, fitted, (VirtualPeople.load(people or LFW_LIKE_TRAIN), model), faces, seed)
        _ways(run, test, repeats, trials, seed)
        _bands(run, test, fitted, trials)
        _absent(run, test, fitted, model, faces, trials, seed)
        _reliability(run, test, fitted, trials)
        _alike(run, test, fitted, trials, seed)
    return run.record()


def write_constants(path: Path, model: MatchModel) -> None:
    """Write a model's constants as a registry of models carries them."""
    lines = [f"{name} = {value:.4g}" for name, value in model.to_dict().items()]
    path.write_text("\n".join(["[calibration.match]", *lines]) + "\n", encoding="utf-8")


def _size(half: MatchingFaces) -> dict[str, int]:
    return {"faces": len(half.faces.descriptors), "people": len(half.faces.people())}


def _ways(run: Run, test: MatchingFaces, repeats: int, trials: int, seed: int) -> None:
    if all(run.has(name) for name in WAYS):
        return
    values: dict[str, dict[str, list[float]]] = {name: {} for name in WAYS}
    for situation, (examples, wrong) in SITUATIONS.items():
        run.say(f"ways to use several examples: {situation}")
        for repeat in range(repeats):
            rng = np.random.default_rng((seed, repeat, examples, wrong))
            found = recalls(test.faces, examples, wrong, trials // repeats, rng)
            for name, numbers in found.items():
                for rate, number in zip(RATES, numbers, strict=True):
                    values[name].setdefault(f"{situation} at {rate:g}", []).append(number)
    for name in WAYS:
        run.add(Row(name, values[name], {"table": "ways"}))


def _order(
    run: Run,
    train: MatchingFaces,
    test: MatchingFaces,
    model: MatchModel,
    virtual: tuple[VirtualPeople, VirtualPeople],
    most: int,
    seed: int,
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
        (half, name): _composed(run, f"{half}, {name}", faces, model, others, most, seed)
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
    run: Run, name: str, faces: LabelledFaces, model: MatchModel, virtual: VirtualPeople, most: int, seed: int
) -> list[Ranked]:
    """Return queries in libraries of several sizes, more of the small ones, for 1, 3 and 10 examples."""
    found: list[Ranked] = []
    fill = partial(_distractors, virtual, seed=seed)
    for size in sorted({min(size, most) for size in (*SIZES, most)}):
        run.say(f"order of photos, {name}, {size:,} faces")
        for examples, draw in product((1, 3, 10), range(max(1, SIZES[1] // size))):
            if len(faces.people(examples + 2)) > CIRCLE:
                rng = np.random.default_rng((seed, size, examples, draw))
                found += ranked_queries(faces, model, examples, size, CIRCLES, fill, rng)
    return found


def _bands(run: Run, test: MatchingFaces, model: MatchModel, trials: int) -> None:
    """Measure each number of examples, all of them together, degraded copies, and wrong labels left in."""
    names = {n: f"{n} example{'s' * (n > 1)}" for n in EXAMPLES}
    parts: list[Bands] = []
    for n in EXAMPLES:
        if test.faces.people(n):
            run.say(f"false matches and recall, {names[n]}")
            parts.append(bands(test.faces, model, n, trials))
            run.add(Row(names[n], {}, {"table": "bands", **parts[-1].to_dict()}))
    run.add(Row("all together", {}, {"table": "bands", **false_matches(parts)}))
    for name, faces in {**test.degraded, "labels as they are": test.labelled}.items():
        for n in (1, 3):
            run.say(f"false matches and recall, {name}, {names[n]}")
            found = bands(faces, model, n, trials // 2)
            run.add(Row(f"{names[n]}, {name}", {}, {"table": "bands", **found.to_dict()}))


def _absent(
    run: Run,
    test: MatchingFaces,
    model: MatchModel,
    virtual: VirtualPeople,
    faces: int,
    trials: int,
    seed: int,
) -> None:
    distractors = _distractors(virtual, max(0, faces - len(test.faces.descriptors)), seed)
    for n in (1, 3, 10):
        if test.faces.people(n + 1):
            run.say(f"absent people, {n} examples")
            found = absent(test.faces, distractors, model, n, min(trials, 1500))
            run.add(Row(f"absent, {n} example{'s' * (n > 1)}", {}, {"table": "absent", **found}))


def _distractors(virtual: VirtualPeople, count: int, seed: int) -> NDArray[np.float32]:
    """Return faces of virtual people, two of each."""
    rng = np.random.default_rng((seed, 77))
    crowd = virtual.people(rng, max(1, -(-count // 2)))
    return virtual.faces(rng, crowd, np.arange(count) // 2)


def _alike(run: Run, test: MatchingFaces, model: MatchModel, trials: int, seed: int) -> None:
    run.say("libraries of people who look alike")
    for way, found in alike_libraries(test.faces, model, LIBRARIES, trials, seed).items():
        run.add(Row(way, {}, {"table": "alike", **found}))


def _reliability(run: Run, test: MatchingFaces, model: MatchModel, trials: int) -> None:
    for n in (1, 3):
        run.say(f"probabilities, {n} examples")
        for found in reliability(test.faces, model, n, trials // 4):
            name = f"{n} example{'s' * (n > 1)}, {found['low']:g} to {found['high']:g}"
            run.add(Row(name, {}, {"table": "reliability", **found}))
