"""Scores of a face for every name, fitted to the portraits, and labels by the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.collect.faces import gallery
from setnet.collect.rules import NamedScore, Outcome, without_repeats
from setnet.collect.run import CollectRun, Row, Work, descriptors_in
from setnet.errors import InvalidInputError, MissingExtraError

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

# Of SFace on LFW's training half (686 people of two to five photos): sharpness, and the similarity at which a
# face is as likely the person's as nobody's of the list. Few portraits are told apart without any error, so
# that their own optimum lies at infinity: these values keep it near, with the weight of a few portraits.
SHARPNESS, MIDDLE = 47.0, 0.38
_SPREAD = 0.3, 0.05  # of log sharpness and of the similarity, from one descriptor or archive to another
# Share of faces of nobody in the list: by the paper's tables 1 and 2, 319,000 of 546,000 are celebrities'.
UNKNOWN = 0.42
_MAX_TRIALS = 4000
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class FaceClassifier:
    """A linear classifier of descriptors, followed by a softmax over the names and "nobody of the list"."""

    names: tuple[str, ...]  # the classes
    weights: Floats  # (names, D): the logit of a name is ``weights @ descriptor``
    nobody: float  # the logit of nobody in the list, whatever the face

    def scores(self, descriptors: Floats) -> Doubles:
        """Return (n, names): the share of each name in the softmax."""
        return softmax(descriptors @ self.weights.T, self.nobody)

    def rank(self, descriptors: Floats, k: int) -> list[list[NamedScore]]:
        """Return for each face the k names with the highest scores, highest first."""
        scores = self.scores(descriptors)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [
            [NamedScore(self.names[i], float(row[i])) for i in chosen.tolist()]
            for row, chosen in zip(scores, order, strict=True)
        ]

    @classmethod
    def from_portraits(cls, gallery: Mapping[str, Floats]) -> FaceClassifier:
        """Return the classifier by similarity to portraits, its softmax fitted to them if there are enough.

        The logit of a name is the sharpness times the mean similarity to its portraits. Such a mean
        does not grow with the number of portraits, as the similarity to their renormalised mean would.
        """
        sharpness, nobody = fit_softmax(*portrait_trials(gallery))
        means = np.stack([rows.mean(axis=0) for rows in gallery.values()]).astype(np.float32)
        return cls(tuple(gallery), np.float32(sharpness) * means, nobody)

    @classmethod
    def of(cls, run: CollectRun) -> FaceClassifier:
        """Return the classifier made from a run's portraits."""
        people = gallery(run)
        if not people:
            raise InvalidInputError(
                "no portrait of anybody can be used: `setnet collect status RUN` says why each was dropped"
            )
        return cls.from_portraits(people)


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


def portrait_trials(gallery: Mapping[str, Floats]) -> tuple[Doubles, NDArray[np.int64]]:
    """Return mean similarities of portraits to all people, (trials, people), and whose portrait each is.

    Each is left out of its own person's. The portraits are those of people with two or more, a random part
    of them where there are many.
    """
    rows = list(gallery.values())
    means = np.stack([own.mean(axis=0, dtype=np.float64) for own in rows])
    places = [(person, k) for person, own in enumerate(rows) if len(own) > 1 for k in range(len(own))]
    if len(places) > _MAX_TRIALS:
        chosen = np.random.default_rng(0).choice(len(places), _MAX_TRIALS, replace=False)
        places = [places[i] for i in np.sort(chosen).tolist()]
    if not places:
        return np.empty((0, len(rows))), np.empty(0, np.int64)
    faces = np.stack([rows[person][k] for person, k in places]).astype(np.float64)
    own = np.array([person for person, _ in places])
    similarities = faces @ means.T
    sizes = np.array([len(rows[person]) for person in own.tolist()])
    at = np.arange(len(own)), own
    itself = np.einsum("ij,ij->i", faces, faces)
    similarities[at] = (similarities[at] * sizes - itself) / (sizes - 1)
    return similarities, own


def fit_softmax(similarities: Doubles, own: NDArray[np.int64]) -> tuple[float, float]:
    """Return sharpness and the logit of nobody that make own names and unknown people likeliest.

    `similarities` and `own` are those of `portrait_trials`.
    """
    if not len(own):
        return SHARPNESS, round(SHARPNESS * MIDDLE, 3)
    try:
        from scipy.optimize import minimize
    except ModuleNotFoundError:
        raise MissingExtraError("calibrating a collection", "scipy", "evaluate") from None
    at = np.arange(len(own)), own
    others = similarities.copy()  # as if nobody's own name were in the list
    others[at] = -np.inf
    expected = np.array([np.log(SHARPNESS), MIDDLE])

    def loss(parameters: Doubles) -> float:
        sharpness = float(np.exp(parameters[0]))
        nobody = sharpness * float(parameters[1])
        right = softmax(sharpness * similarities, nobody)[at]
        known = softmax(sharpness * others, nobody).sum(axis=1)
        likely = (1 - UNKNOWN) * np.log(right + _TINY).sum() + UNKNOWN * np.log(1 - known + _TINY).sum()
        return float((((parameters - expected) / _SPREAD) ** 2).sum() / 2 - likely)

    found = minimize(loss, expected, method="Nelder-Mead", options={"xatol": 1e-3}).x
    sharpness = float(np.exp(found[0]))
    return round(sharpness, 3), round(sharpness * float(found[1]), 3)
