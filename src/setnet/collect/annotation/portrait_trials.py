"""Trials on portraits alone: each left out in turn, once as itself and once as a stranger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from setnet.collect.annotation.classifier import FaceClassifier, softmax

Floats = NDArray[np.float32]

# Of SFace on LFW's training half (800 people of two to five photos): sharpness, and the similarity at which a
# face is as likely the person's as nobody's of the list. Few portraits are told apart without any error, so
# that their own optimum lies at infinity: these values keep it near, with the weight of a few portraits.
SHARPNESS, MIDDLE = 54.0, 0.45
_SPREAD = 0.3, 0.05  # of log sharpness and of the similarity, from one descriptor or archive to another
_MOST_TRIALS = 4000
_TINY = 1e-12


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

    similarities: NDArray[np.float64]
    own: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.own)

    def as_strangers(self) -> NDArray[np.float64]:
        """Return the similarities with everybody's own name out of the list."""
        masked = self.similarities.copy()
        masked[np.arange(len(self.own)), self.own] = -np.inf
        return masked


def portrait_trials(gallery: Mapping[str, Floats], seed: int = 0) -> PortraitTrials:
    """Return the trials of people with two portraits or more, a random part of them where there are many."""
    means = np.stack([rows.mean(axis=0, dtype=np.float64) for rows in gallery.values()])
    rows = list(gallery.values())
    places = [(person, k) for person, own in enumerate(rows) if len(own) > 1 for k in range(len(own))]
    if len(places) > _MOST_TRIALS:
        chosen = np.random.default_rng(seed).choice(len(places), _MOST_TRIALS, replace=False)
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
    others = trials.as_strangers()
    at = np.arange(len(trials)), trials.own
    expected = np.array([np.log(SHARPNESS), MIDDLE])

    def loss(parameters: NDArray[np.float64]) -> float:
        sharpness = float(np.exp(parameters[0]))
        nobody = sharpness * float(parameters[1])
        right = softmax(sharpness * trials.similarities, nobody)[at]
        known = softmax(sharpness * others, nobody).sum(axis=1)
        likely = (1 - strangers) * np.log(right + _TINY).sum() + strangers * np.log(1 - known + _TINY).sum()
        return float((((parameters - expected) / _SPREAD) ** 2).sum() / 2 - likely)

    if not len(trials):
        return SHARPNESS, round(SHARPNESS * MIDDLE, 3)
    found = minimize(loss, expected, method="Nelder-Mead", options={"xatol": 1e-3}).x
    sharpness = float(np.exp(found[0]))
    return round(sharpness, 3), round(sharpness * float(found[1]), 3)


def portrait_classifier(gallery: Mapping[str, Floats], strangers: float) -> FaceClassifier:
    """Return the classifier made from portraits, its softmax fitted to them where there are enough."""
    sharpness, nobody = fit_softmax(portrait_trials(gallery), strangers)
    return FaceClassifier.of_portraits(gallery, sharpness, nobody)
