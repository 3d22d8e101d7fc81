"""Codes of one bit per dimension: rotations, estimates and what they cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.heads import unit
from setnet.heads.bit_codes import BitCodec, code_bits


@pytest.mark.parametrize("dim", [1, 4, 64, 100, 128, 200, 512, 1500])
def test_a_rotation_keeps_dot_products(dim: int) -> None:
    rows = np.random.default_rng(dim).normal(size=(5, dim)).astype(np.float32)
    turned = BitCodec.rotated(rows)
    assert turned.shape == (5, code_bits(dim))
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, rtol=1e-4, atol=1e-3)


def test_the_rotation_is_the_same_everywhere() -> None:
    """Codes are stored: another machine must turn queries as this one turned elements."""
    turned = BitCodec.rotated(np.arange(100, dtype=np.float32)[None])
    np.testing.assert_allclose(turned[0, :4], [-19.566, 87.281, 32.367, -1.863], atol=1e-3)


@pytest.mark.parametrize("centred", [False, True])
def test_estimates_are_unbiased_and_as_good_as_a_bit_per_dimension_allows(centred: bool) -> None:
    rng = np.random.default_rng(3)
    rows = unit(rng.normal(size=(4000, 128)).astype(np.float32) + 0.3)
    queries = rows[::100]
    codec = BitCodec(rows.mean(axis=0) if centred else np.zeros(128, np.float32))
    error = codec.estimates(*codec.encode(rows), queries) - rows @ queries.T
    assert abs(error.mean()) < 0.005
    assert error.std() < 0.08  # sqrt(pi / 2 - 1) / sqrt(128) is 0.067
    assert np.corrcoef((rows @ queries.T).ravel(), error.ravel())[0, 1] < 0.2


@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
def test_a_vector_estimates_its_own_length(dim: int, seed: int, length: float) -> None:
    v = unit(np.random.default_rng(seed).normal(size=(1, dim)).astype(np.float32)) * np.float32(length)
    codec = BitCodec(np.zeros(dim, np.float32))
    estimate = codec.estimates(*codec.encode(v), v)
    np.testing.assert_allclose(estimate, v @ v.T, rtol=0.01)


def test_the_centre_itself_has_no_direction() -> None:
    codec = BitCodec(np.ones(8, np.float32))
    codes, factors = codec.encode(np.ones((1, 8), np.float32))
    assert factors.tolist() == [0]
    assert codec.estimates(codes, factors, np.ones((1, 8), np.float32)).tolist() == [[8.0]]
