"""Resampling people and worlds."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate.measures import DRAWS, Measured, people_draws
from setnet.evaluate.record import Row, mean_and_error


def pairs(number: int) -> list[tuple[int, int]]:
    return [(2 * i, 2 * i + 1) for i in range(number)]


def test_queries_that_share_nobody_vary_as_independent_ones_do() -> None:
    values = np.random.default_rng(0).normal(50, 10, 400)
    draws = people_draws([values], [pairs(400)])
    assert draws.shape == (DRAWS,)
    # a query counts with the product of two counts, whose square has mean 4: twice the plain error
    assert draws.std() == pytest.approx(np.sqrt(3) * 10 / np.sqrt(400), rel=0.25)


def test_queries_of_one_person_rise_and_fall_together() -> None:
    values = np.repeat([40.0, 60.0], 50)
    shared = people_draws([values], [[(0, 2 + i) if i < 50 else (1, 2 + i) for i in range(100)]])
    apart = people_draws([values], [pairs(100)])
    assert shared.std() > 3 * apart.std()


def test_worlds_are_resampled_too() -> None:
    equal = [np.full(50, value) for value in (40.0, 50.0, 60.0)]
    draws = people_draws(equal, [pairs(50)] * 3)
    assert draws.std() == pytest.approx(np.std([40, 50, 60]) / np.sqrt(3), rel=0.2)
    assert people_draws(equal[:1], [pairs(50)]).std() == pytest.approx(0.0, abs=1e-9)


def test_methods_are_resampled_alike() -> None:
    values = np.random.default_rng(0).normal(50, 10, 60)
    lead = people_draws([values + 3.0], [pairs(60)]) - people_draws([values], [pairs(60)])
    assert lead == pytest.approx(3.0)
    rows = [Measured.of({"x": [(values + more).tolist()] * 2}, pairs(60)) for more in (3.0, 0.0)]
    first, second = (Row(name, row.values, draws=row.draws) for name, row in zip("ab", rows, strict=True))
    points, error = first.lead(second, "x")
    assert points == pytest.approx(3.0)
    assert error == pytest.approx(0.0, abs=1e-3)
    assert first.estimate("x")[1] > 1.0


def test_training_seeds_add_to_the_error_of_people() -> None:
    draws = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
    assert mean_and_error([[2.0], [2.0]], draws) == (2.0, 1.0)
    assert mean_and_error([[1.0], [3.0]], draws)[1] == pytest.approx(np.sqrt(1 + 1))
