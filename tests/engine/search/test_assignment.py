"""The pairing of query elements and an item's elements is SciPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from setnet.engine.rank import best_pairs

SHAPES = st.tuples(st.integers(0, 7), st.integers(0, 7))
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-1, 1))


@given(arrays(np.float64, SHAPES, elements=VALUES))
def test_pairs_add_up_to_the_most_that_is_possible(value: NDArray[np.float64]) -> None:
    rows, columns = best_pairs(value)
    assert len(rows) == min(value.shape)
    assert (np.diff(rows) > 0).all()
    assert len(np.unique(columns)) == len(columns)
    expected = value[linear_sum_assignment(value, maximize=True)].sum()
    np.testing.assert_allclose(value[rows, columns].sum(), expected, atol=1e-9)
