"""Bounds of rare rates."""

from __future__ import annotations

import numpy as np
import pytest

from studies.matching import by_person, clopper_pearson


@pytest.mark.parametrize(
    ("count", "trials", "bound"), [(0, 100, 0.0295), (1, 100, 0.0466), (10, 1000, 0.0169)]
)
def test_clopper_and_pearsons_bound_is_the_published_one(count: int, trials: int, bound: float) -> None:
    assert clopper_pearson(count, trials) == pytest.approx(bound, abs=2e-4)


def test_events_of_one_person_make_the_bound_wider_than_scattered_ones() -> None:
    trials, person = np.full(1000, 100.0), np.repeat(np.arange(100), 10)
    scattered = (np.arange(1000) % 50 == 0).astype(float)
    together = np.where(person == 3, 2.0, 0.0)
    assert scattered.sum() == together.sum()
    assert by_person(together, trials, person) > by_person(scattered, trials, person) > 2e-4
    assert by_person(np.zeros(1000), trials, person) == 0.0
