"""Scores of a face for every name, fitted to the portraits; labels by the rules; calibrated thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.collect.faces import gallery
from setnet.collect.rules import NamedScore, Outcome, without_repeats
from setnet.collect.run import CollectRun, Row, Work, descriptors_in
from setnet.errors import InvalidInputError, MissingExtraError
from setnet.library.descriptor_files import read_arrays

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

# Of SFace on LFW's training half (686 people of two to five photos): sharpness, and the similarity at which a
# face is as likely the person's as nobody's of the list. Few portraits are told apart without any error, so
# that their own optimum lies at infinity: these values keep it near, with the weight of a few portraits.
SHARPNESS, MIDDLE = 47.0, 0.38
_SPREAD = 0.3, 0.05  # of log sharpness and of the similarity, from one descriptor or archive to another
_MAX_TRIALS, _MIN_TRIALS = 4000, 50
_TINY = 1e-12
# Share of faces that are of a person of the list who was not searched for: by the paper's table 2 about
# 21,000 of 546,000 celebrities are a third, fourth or later one in their photo.
_BYSTANDERS = 0.04
_QUERY_NAMES = 2


@dataclass(frozen=True, eq=False)
class FaceClassifier:
    """A linear classifier of descriptors, followed by a softmax over the names and "nobody of the list".

    Attributes
    ----------
    names
        The classes.
    weights, bias
        (names, D) and (names,): the logit of a name is ``weights @ descriptor + bias``.
    nobody
        The logit of nobody in the list, whatever the face; minus infinity leaves that class out, as in the
        paper's classifier.
    """

    names: tuple[str, ...]
    weights: Floats
    bias: Floats
    nobody: float = -np.inf

    def scores(self, descriptors: Floats) -> Doubles:
        """Return (n, names): the share of each name in the softmax."""
        return softmax(descriptors @ self.weights.T + self.bias, self.nobody)

    def rank(self, descriptors: Floats, k: int) -> list[list[NamedScore]]:
        """Return for each face the k names with the highest scores, highest first."""
        scores = self.scores(descriptors)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [
            [NamedScore(self.names[i], float(row[i])) for i in chosen.tolist()]
            for row, chosen in zip(scores, order, strict=True)
        ]

    @classmethod
    def from_portraits(cls, gallery: Mapping[str, Floats], strangers: float) -> FaceClassifier:
        """Return the classifier by similarity to portraits, its softmax fitted to them if there are enough.

        The logit of a name is the sharpness times the mean similarity to its portraits. Such a mean
        does not grow with the number of portraits, as the similarity to their renormalised mean would.
        """
        sharpness, nobody = fit_softmax(portrait_trials(gallery), strangers)
        means = np.stack([rows.mean(axis=0) for rows in gallery.values()]).astype(np.float32)
        return cls(tuple(gallery), np.float32(sharpness) * means, np.zeros(len(means), np.float32), nobody)

    @classmethod
    def read(cls, path: Path) -> FaceClassifier:
        """Read a classifier of one's own: an ``.npz`` with ``names``, ``weights`` and ``bias``."""
        names, weights, bias = read_arrays(path, ("names", "weights", "bias"))
        if weights.ndim != 2 or names.shape != weights.shape[:1] or bias.shape != names.shape:
            raise InvalidInputError(
                f"{path}: names {names.shape}, weights {weights.shape} and bias {bias.shape} do not fit "
                "(n,), (n, D) and (n,)"
            )
        numbers = [np.asarray(array, np.float32) for array in (weights, bias)]
        if not all(np.isfinite(array).all() for array in numbers):
            raise InvalidInputError(f"{path}: weights or bias hold NaN or infinity")
        return cls(tuple(names.astype(str).tolist()), numbers[0], numbers[1])

    @classmethod
    def of(cls, run: CollectRun) -> FaceClassifier:
        """Return the classifier that a run labels with: the user's own, or one made from the portraits."""
        people = gallery(run)
        if not people:
            raise InvalidInputError(
                "no portrait of anybody can be used: `setnet collect status RUN` says why each was dropped"
            )
        if run.settings.classifier is None:
            return cls.from_portraits(people, run.settings.strangers)
        own, dim = cls.read(Path(run.settings.classifier)), next(iter(people.values())).shape[1]
        if own.weights.shape[1] != dim:
            raise InvalidInputError(
                f"{run.settings.classifier}: for descriptors of {own.weights.shape[1]} numbers; "
                f"{run.settings.descriptor} has {dim}"
            )
        return own


def softmax(logits: NDArray[np.floating], nobody: float) -> Doubles:
    """Return the softmax of each row over its logits and one more class; without the share of that.

    >>> softmax(np.array([[0.0, 0.0]]), 0.0).round(2).tolist()
    [[0.33, 0.33]]
    """
    wide = np.asarray(logits, np.float64)
    top = np.maximum(wide.max(axis=1, keepdims=True), nobody)
    shares = np.exp(wide - top)
    total: Doubles = shares / (shares.sum(axis=1, keepdims=True) + np.exp(nobody - top))
    return total


def photos_with_faces(run: CollectRun) -> Iterator[Row]:
    """Yield the rows of faces of the photos left after near-duplicates were dropped."""
    unique = (row["photo"] for row in run.manifest("duplicates").kept_rows())
    wanted = next(unique, None)
    for row in run.manifest("faces").kept_rows():  # both are in the same order
        if row["photo"] == wanted:
            yield row
            wanted = next(unique, None)


def label_rows(run: CollectRun, _: Work) -> Iterator[Row]:
    """Yield a row per photo: its faces with their best names and what the rules say of each."""
    classifier, rules = FaceClassifier.of(run), run.settings.rules
    names = len(classifier.names)
    for row in photos_with_faces(run):
        ranked = classifier.rank(descriptors_in(row), rules.best)
        decisions = without_repeats([rules.decide(each, row["query"], names) for each in ranked], ranked)
        faces = [
            {
                "box": face["box"],
                "best": [[each.name, round(each.score, 4)] for each in best],
                "outcome": str(decision.outcome),
                "name": decision.name,
                "rule": decision.rule,
            }
            for face, best, decision in zip(row["faces"], ranked, decisions, strict=True)
        ]
        made = {name: row[name] for name in ("photo", "width", "height", "query", "text")}
        made |= {"faces": faces, "kept": True}
        middling = next((i for i, d in enumerate(decisions) if d.outcome is Outcome.DROP_PHOTO), None)
        if middling is not None:
            best = ranked[middling][0]
            detail = f"face {middling + 1} may be {best.name} ({best.score:.2f})"
            made |= {"kept": False, "reason": "middle score", "detail": detail}
        yield made


@dataclass(frozen=True, eq=False)
class PortraitTrials:
    """Similarities of portraits to all people, each portrait left out of its own person's.

    Attributes
    ----------
    similarities
        (trials, people): mean similarity to each person's portraits.
    own
        Whose portrait each is.
    """

    similarities: Doubles
    own: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.own)

    def as_strangers(self) -> Doubles:
        """Return the similarities with everybody's own name out of the list."""
        masked = self.similarities.copy()
        masked[np.arange(len(self.own)), self.own] = -np.inf
        return masked


def portrait_trials(gallery: Mapping[str, Floats], seed: int = 0) -> PortraitTrials:
    """Return the trials of people with two portraits or more, a random part of them where there are many."""
    rows = list(gallery.values())
    means = np.stack([own.mean(axis=0, dtype=np.float64) for own in rows])
    places = [(person, k) for person, own in enumerate(rows) if len(own) > 1 for k in range(len(own))]
    if len(places) > _MAX_TRIALS:
        chosen = np.random.default_rng(seed).choice(len(places), _MAX_TRIALS, replace=False)
        places = [places[i] for i in np.sort(chosen).tolist()]
    if not places:
        return PortraitTrials(np.empty((0, len(rows))), np.empty(0, np.int64))
    faces = np.stack([rows[person][k] for person, k in places]).astype(np.float64)
    own = np.array([person for person, _ in places])
    similarities = faces @ means.T
    sizes = np.array([len(rows[person]) for person in own.tolist()])
    at = np.arange(len(own)), own
    itself = np.einsum("ij,ij->i", faces, faces)
    similarities[at] = (similarities[at] * sizes - itself) / (sizes - 1)
    return PortraitTrials(similarities, own)


def fit_softmax(trials: PortraitTrials, strangers: float) -> tuple[float, float]:
    """Return sharpness and the logit of nobody that make the portraits' own names and strangers likeliest.

    Parameters
    ----------
    strangers
        The share of strangers among the faces to be labelled.
    """
    if not len(trials):
        return SHARPNESS, round(SHARPNESS * MIDDLE, 3)
    try:
        from scipy.optimize import minimize
    except ModuleNotFoundError:
        raise MissingExtraError("calibrating a collection", "scipy", "evaluate") from None
    others = trials.as_strangers()
    at = np.arange(len(trials)), trials.own
    expected = np.array([np.log(SHARPNESS), MIDDLE])

    def loss(parameters: Doubles) -> float:
        sharpness = float(np.exp(parameters[0]))
        nobody = sharpness * float(parameters[1])
        right = softmax(sharpness * trials.similarities, nobody)[at]
        known = softmax(sharpness * others, nobody).sum(axis=1)
        likely = (1 - strangers) * np.log(right + _TINY).sum() + strangers * np.log(1 - known + _TINY).sum()
        return float((((parameters - expected) / _SPREAD) ** 2).sum() / 2 - likely)

    found = minimize(loss, expected, method="Nelder-Mead", options={"xatol": 1e-3}).x
    sharpness = float(np.exp(found[0]))
    return round(sharpness, 3), round(sharpness * float(found[1]), 3)


@dataclass(frozen=True)
class CalibratedThreshold:
    """A threshold: the one in use with its precision, and the one that has the precision asked for."""

    name: str
    value: float
    precision: float
    suggested: float
    suggested_precision: float


@dataclass(frozen=True)
class RuleCalibration:
    """Each threshold with its precision, and on how many portraits it was measured."""

    thresholds: tuple[CalibratedThreshold, ...]
    portraits: int
    people: int


def calibrate_rules(run: CollectRun, precision: float = 0.99) -> RuleCalibration:
    """Return thresholds whose precision is the same for a run's descriptor and list of names.

    Every portrait is tried twice: with its person in the list, and as a stranger with that name taken out.
    Accepted names are to be right in ``precision`` of the cases, and the best name of a face that is called
    unknown wrong in as many (the paper: "always wrong"). The paper does not say how precise its own
    thresholds were, which belong to its classifier.
    """
    rules, strangers = run.settings.rules, run.settings.strangers
    trials = portrait_trials(gallery(run))
    if len(trials) < _MIN_TRIALS:
        raise InvalidInputError(
            f"{len(trials)} portraits are of people with two or more; to calibrate, {_MIN_TRIALS} are needed"
        )
    sharpness, nobody = fit_softmax(trials, strangers)
    scores = softmax(sharpness * trials.similarities, nobody)
    as_stranger = softmax(sharpness * trials.as_strangers(), nobody).max(axis=1)
    top, people = scores.max(axis=1), scores.shape[1]
    is_right = scores.argmax(axis=1) == trials.own
    right, wrong = top[is_right], top[~is_right]
    searched = 1 - strangers - _BYSTANDERS

    def query(t: float) -> float:
        mistakes = (wrong >= t).sum() * searched / max(1, people - 1)
        mistakes += (as_stranger >= t).sum() * strangers * _QUERY_NAMES / people
        return _share((right >= t).sum() * searched, mistakes)

    def other(t: float) -> float:
        mistakes = (wrong >= t).sum() * _BYSTANDERS + (as_stranger >= t).sum() * strangers
        return _share((right >= t).sum() * _BYSTANDERS, mistakes)

    def unknown(t: float) -> float:
        mistakes = (wrong < t).sum() * _BYSTANDERS + (as_stranger < t).sum() * strangers
        return _share(mistakes, (right < t).sum() * _BYSTANDERS)

    grid = np.round(np.arange(0.01, 1.0, 0.01), 2).tolist()
    accept_other = _lowest_from(grid, other, precision)
    below = max((t for t in grid if unknown(t) >= precision), default=0.0)
    thresholds = tuple(
        CalibratedThreshold(name, old, measure(old), new, measure(new))
        for name, old, new, measure in (
            ("accept_query", rules.accept_query, _lowest_from(grid, query, precision), query),
            ("accept_other", rules.accept_other, accept_other, other),
            ("unknown_below", rules.unknown_below, min(below, accept_other), unknown),
        )
    )
    return RuleCalibration(thresholds, len(trials), len(set(trials.own.tolist())))


def _share(right: float, wrong: float) -> float:
    return float(right / (right + wrong)) if right + wrong else 1.0


def _lowest_from(grid: list[float], measure: Callable[[float], float], precision: float) -> float:
    """Return the least threshold from which on the precision stays high enough; the last if there is none."""
    short = [number for number, t in enumerate(grid) if measure(t) < precision]
    return grid[min(short[-1] + 1, len(grid) - 1)] if short else grid[0]
