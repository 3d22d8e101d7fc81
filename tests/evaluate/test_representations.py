"""Elements in the codes an index keeps."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate.representations import _rotation, coded_elements, element_bytes
from setnet.heads import unit


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return unit((rng.normal(size=(500, 128)) + 0.1).astype(np.float32))


def test_fewer_bits_lose_more(rows: np.ndarray) -> None:
    queries = unit(np.random.default_rng(1).normal(size=(20, 128)).astype(np.float32))
    exact = rows @ queries.T
    errors = [float(np.abs(coded_elements(bits)(rows) @ queries.T - exact).mean()) for bits in (8, 4, 1)]
    assert errors[0] < 0.002 < errors[1] < errors[2] < 0.06


def test_one_bit_estimates_are_unbiased_and_as_good_as_a_bit_per_dimension_allows() -> None:
    rows = unit(np.random.default_rng(3).normal(size=(4000, 128)).astype(np.float32) + 0.3)
    exact = rows @ rows[::100].T
    error = coded_elements(1)(rows) @ rows[::100].T - exact
    assert abs(error.mean()) < 0.005
    assert error.std() < 0.08  # sqrt(pi / 2 - 1) / sqrt(128) is 0.067
    assert np.corrcoef(exact.ravel(), error.ravel())[0, 1] < 0.2


@pytest.mark.parametrize("dim", [1, 64, 100, 512, 1500])
def test_a_rotation_keeps_dot_products(dim: int) -> None:
    rows = np.random.default_rng(dim).normal(size=(5, dim)).astype(np.float32)
    turned = rows @ _rotation(dim).T
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, rtol=1e-4, atol=1e-3)


def test_rows_of_zeros_stay_out(rows: np.ndarray) -> None:
    padded = np.concatenate([np.zeros((100, 128), np.float32), rows])
    coded = coded_elements(1)(padded)
    assert not coded[:100].any()
    np.testing.assert_allclose(coded[100:], coded_elements(1)(rows), atol=1e-6)


def test_bytes_are_stated_with_the_factor() -> None:
    assert [element_bytes(128, bits) for bits in (32, 8, 4, 1)] == [512, 128, 64, 18]
    assert element_bytes(256, 1) == 34
