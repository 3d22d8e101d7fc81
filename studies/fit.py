"""Fits virtual people to real ones so that both kinds of similarity are distributed alike."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.people import read_people, train_test_split
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.settings import Settings as BaseSettings
from setnet.evaluate.settings import experiment, option, setting
from setnet.evaluate.tables import Table
from setnet.heads import unit
from setnet.train import VirtualPeople
from setnet.train.calibration import Similarities, similarities

TITLE = "Virtual people against real ones"

PEOPLE, FACES_EACH = 3000, 4


@dataclass(frozen=True)
class Distance:
    """How far two samples of similarities are apart."""

    wasserstein: float  # mean distance between equal quantiles, in units of similarity
    kolmogorov: float  # greatest difference between the two cumulative distributions


@dataclass(frozen=True, eq=False)
class Fit:
    """Virtual people, the similarities of the real and of the virtual ones, and how far apart they are."""

    model: VirtualPeople
    real: Similarities
    virtual: Similarities
    same: Distance
    different: Distance


def distance(one: NDArray[np.floating], other: NDArray[np.floating]) -> Distance:
    """Return how far apart two samples are.

    >>> distance(np.array([0.0, 1.0]), np.array([0.5, 1.5]))
    Distance(wasserstein=0.5, kolmogorov=0.5)
    """
    from scipy.stats import ks_2samp, wasserstein_distance

    apart = ks_2samp(one, other, method="asymp").statistic  # the method is that of the p-value, not used
    return Distance(float(wasserstein_distance(one, other)), float(apart))


def sampled(model: VirtualPeople, seed: int, people: int = PEOPLE, pairs: int = 100_000) -> Similarities:
    """Return similarities among virtual people; the same random numbers for the same seed."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(people), FACES_EACH)
    rows = model.faces(rng, model.people(rng, people), owner)
    return similarities(rows, owner, rng, pairs)


def fit_virtual(
    descriptors: NDArray[np.floating], labels: NDArray[np.str_], seed: int = 0, evaluations: int = 120
) -> Fit:
    """Return virtual people like the labelled ones.

    Moments alone miss what normalisation and poor photos do to similarities. Five numbers (scales of mean,
    between and within, and the spread of quality over people and over faces) are then chosen by a simplex
    search for the smallest Wasserstein distance between the real and the virtual similarities.
    """
    from scipy.optimize import minimize
    from scipy.stats import wasserstein_distance

    rows = unit(np.asarray(descriptors, np.float32))
    names, owner = np.unique(labels, return_inverse=True)
    owner = np.where(names[owner] == "", -1, owner)
    real = similarities(rows, owner, np.random.default_rng(seed))
    moments = VirtualPeople.fit(rows[owner >= 0], owner[owner >= 0])

    def at(numbers: NDArray[np.float64]) -> VirtualPeople:
        mean, between, within, person, face = (np.float32(np.exp(n)) for n in numbers)
        return replace(
            moments,
            mean=moments.mean * mean,
            between=moments.between * between,
            within=moments.within * within,
            person_spread=float(person),
            face_spread=float(face),
        )

    def cost(numbers: NDArray[np.float64]) -> float:
        drawn = sampled(at(numbers), seed, people=1000, pairs=20_000)
        apart = wasserstein_distance(real.same, drawn.same)
        return float(apart + wasserstein_distance(real.different, drawn.different))

    start = np.array([0.0, 0.0, 0.0, np.log(0.15), np.log(0.25)])
    simplex = np.vstack([start, start + np.diag([0.1, 0.1, 0.1, 0.5, 0.5])])
    found = minimize(
        cost,
        start,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": evaluations, "xatol": 2e-3},
    )
    model = at(found.x)
    drawn = sampled(model, seed + 1)
    return Fit(model, real, drawn, distance(real.same, drawn.same), distance(real.different, drawn.different))


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Fit virtual people to real ones and show how alike the similarities are."""

    descriptors: Path = field(metadata=option("Descriptor file.", metavar="FILE.npz", is_argument=True))
    out: Path | None = setting(None, "Write the parameters here.", metavar="PEOPLE.npz", counts=False)
    half: str = setting("test", "test, train, or all people.", choices=("test", "train", "all"))


@experiment("fit")
def run(run: Run, settings: Settings) -> None:
    """Fit virtual people to the real ones of a descriptor file, and compare the two kinds of similarity."""
    people = read_people(settings.descriptors)
    if settings.half != "all":
        people = getattr(train_test_split(people, "", settings.seed), settings.half)
    run.total = 2
    run.say("fitting")
    found = fit_virtual(people.descriptors, people.labels, settings.seed)
    if settings.out is not None:
        found.model.save(settings.out)
    run.note(
        world=f"virtual people fitted on {len(people.groups(2))} real ones of two faces or more",
        person_spread=found.model.person_spread,
        face_spread=found.model.face_spread,
    )
    run.add(_row("one person", found.real.same, found.virtual.same, found.same))
    run.add(_row("different people", found.real.different, found.virtual.different, found.different))


def _row(name: str, real: NDArray[np.floating], virtual: NDArray[np.floating], apart: Distance) -> Row:
    facts = {
        "real": float(real.mean()),
        "real_sd": float(real.std()),
        "virtual": float(virtual.mean()),
        "virtual_sd": float(virtual.std()),
    }
    return Row(name, facts=facts | asdict(apart))


def tables(record: Record) -> list[Table]:
    """Return how alike the similarities are."""
    cells = tuple(
        (
            row.name,
            *(f"{row.facts[key]:.3f}" for key in ("real", "real_sd", "virtual", "virtual_sd")),
            f"{row.facts['wasserstein']:.4f}",
            f"{row.facts['kolmogorov']:.4f}",
        )
        for row in record.rows
    )
    columns = ("pairs", "real mean", "sd", "virtual mean", "sd", "Wasserstein", "Kolmogorov-Smirnov")
    return [Table("Similarities of real and of virtual people", columns, cells)]


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.fit")
