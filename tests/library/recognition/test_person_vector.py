"""One vector of several examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.library.person_matcher import person_vector
from tests.support.invented_photos import face_of


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_it_has_length_one_and_does_not_depend_on_the_order(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    examples = np.stack([face_of(1, view) for view in range(n)]) * rng.uniform(0.1, 9.0, (n, 1))
    vector = person_vector(examples)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)
    assert np.allclose(vector, person_vector(rng.permutation(examples)), atol=1e-6)


def test_one_example_is_itself_and_two_count_the_same() -> None:
    one, other = face_of(1, 0), face_of(1, 1)
    assert np.allclose(person_vector(one[None]), one, atol=1e-6)
    both = person_vector(np.stack([one, other]))
    assert both @ one == pytest.approx(float(both @ other), abs=1e-6)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_an_example_of_somebody_else_counts_next_to_nothing(n: int) -> None:
    own = np.stack([face_of(1, view) for view in range(n)])
    mixed = own.copy()
    mixed[-1] = face_of(2, 0)
    plain = mixed.mean(axis=0) / np.linalg.norm(mixed.mean(axis=0))
    again, stranger = face_of(1, 99), face_of(2, 99)
    assert person_vector(mixed) @ again > 0.95 * (person_vector(own) @ again)
    assert person_vector(mixed) @ stranger < 0.7 * (plain @ stranger)


def test_examples_that_cancel_out_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="the examples of Anna cancel out"):
        person_vector(np.array([[1.0, 0.0], [-1.0, 0.0]]), "Anna")
