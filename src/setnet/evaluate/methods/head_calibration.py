"""Fitting a head's (w, b) to a user's own people by how well it ranks their sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.methods.stress import calibrated, stress
from setnet.evaluate.worlds.stress_world import StressWorld, stress_world
from setnet.sets import Logistic, SetNet

__all__ = ["HeadCalibration", "best_logistic", "calibrate_head"]

LEAST_PEOPLE = 10
LEAST_STRANGERS = 20
SETS, QUERIES, REPEATS = 6000, 80, 2


@dataclass(frozen=True)
class HeadCalibration:
    """A head's best (w, b), and its nDCG@10 in percent, over 2 to 5 faces, before and after."""

    logistic: Logistic
    before: float
    after: float


def best_logistic(net: SetNet, world: StressWorld) -> Logistic:
    """Return the (w, b) that ranks ``world`` best.

    One-bit heads miss so little at two faces that a logarithm of it would look at nothing else.
    """
    return calibrated(net, world, relative=net.bits == 32)


def calibrate_head(
    net: SetNet, descriptors: NDArray[np.float32], labels: NDArray[np.str_], seed: int = 0
) -> HeadCalibration:
    """Fit (w, b) on random sets of labelled faces, asking with other faces of the same people.

    People of one face and unknown people fill the sets up; where there are hardly any, every fifth person
    plays a stranger. Likelihood would not do: it is made by the many easy pairs, the first ranks by the few
    hard ones.
    """
    world = stress_world(
        descriptors, _with_strangers(labels, seed), sets=SETS, queries=QUERIES, repeats=REPEATS, seed=seed
    )
    logistic = best_logistic(net, world)
    before, after = (float(stress(net, world, logistic=one).means.mean()) for one in (net.logistic, logistic))
    return HeadCalibration(logistic, before, after)


def _with_strangers(labels: NDArray[np.str_], seed: int) -> NDArray[np.str_]:
    names, owner, photos = np.unique(labels, return_inverse=True, return_counts=True)
    known = np.flatnonzero((photos >= 2) & (names != ""))
    if len(known) < LEAST_PEOPLE:
        raise InvalidInputError(
            f"{len(known)} people have two labelled faces or more: calibrating a head needs {LEAST_PEOPLE}"
        )
    if np.isin(owner, known, invert=True).sum() >= LEAST_STRANGERS:
        return labels
    aside = np.random.default_rng(seed).permutation(known)[: len(known) // 5]
    return np.where(np.isin(owner, aside), "", labels)
