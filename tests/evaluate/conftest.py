"""Small virtual people, the methods and the stress world made of them, and a small record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from setnet.evaluate.methods import Methods
from setnet.evaluate.people import LFW_LIKE, LabelledPeople, TrainTestSplit, virtual_split
from setnet.evaluate.record import Row, Run
from setnet.evaluate.settings import MethodSettings, PeopleSettings
from setnet.evaluate.stress_trial import StressWorld, stress_world
from setnet.train import VirtualPeople


@pytest.fixture(scope="session")
def model() -> VirtualPeople:
    return VirtualPeople.load(LFW_LIKE)


@pytest.fixture(scope="session")
def split() -> TrainTestSplit:
    return virtual_split(1.5, seed=0, people=150)


@pytest.fixture(scope="session")
def methods(split: TrainTestSplit) -> Methods:
    return Methods(split.train, fitting_sets=800)


@pytest.fixture(scope="session")
def stress_people() -> LabelledPeople:
    """60 people of five faces, 20 of two, 200 of one; labels sort by these numbers."""
    rng = np.random.default_rng(0)
    eye = np.eye(128, dtype=np.float32)
    model = VirtualPeople(np.zeros(128, np.float32), eye, 0.8 * eye)
    who = np.concatenate([np.repeat(np.arange(60), 5), 60 + np.arange(20).repeat(2), 80 + np.arange(200)])
    return LabelledPeople(model.faces(rng, model.people(rng, 280), who), np.array([f"p{i:03}" for i in who]))


@pytest.fixture(scope="session")
def world(stress_people: LabelledPeople) -> StressWorld:
    some = stress_people
    return stress_world(some.descriptors, some.labels, sets=3000, queries=30, repeats=3, seed=1)


@pytest.fixture
def toy_people(split: TrainTestSplit, methods: Methods, monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments without descriptors on 150 virtual people, with methods that are fitted once for all."""
    monkeypatch.setattr(PeopleSettings, "train_test_split", lambda _: split)
    monkeypatch.setattr(MethodSettings, "fitted_methods", lambda _, split, max_sets=None: methods)


def stress_row(name: str, middle: float, bound: bool = False) -> Row:
    values = {f"ndcg{d}@{f}": [middle - f, middle - f + 1] for d in (10, 30) for f in (2, 3, 4, 5)}
    return Row(name, values, {"bytes": 512, "bytes_per_item": 512}, bound)


@pytest.fixture
def stress_run() -> Callable[..., Run]:
    """Return the function that makes the run of a small stress test, kept in a file or not."""

    def made(path: Path | None = None) -> Run:
        run = Run("stress", {"seed": 0}, path)
        for row in (stress_row("mean", 80), stress_row("a|b <i>", 90), stress_row("bound", 99, bound=True)):
            run.add(row)
        return run

    return made
