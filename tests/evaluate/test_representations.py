"""Elements in the codes an index keeps."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate.representations import coded_elements, element_bytes
from setnet.heads import unit
from setnet.heads.bit_codes import BitCodec


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return unit((rng.normal(size=(500, 128)) + 0.1).astype(np.float32))


def test_fewer_bits_lose_more(rows: np.ndarray) -> None:
    queries = unit(np.random.default_rng(1).normal(size=(20, 128)).astype(np.float32))
    exact = rows @ queries.T
    errors = [float(np.abs(coded_elements(bits)(rows) @ queries.T - exact).mean()) for bits in (8, 4, 1)]
    assert errors[0] < 0.002 < errors[1] < errors[2] < 0.06


def test_one_bit_has_the_estimates_of_the_codec(rows: np.ndarray) -> None:
    queries = unit(np.random.default_rng(1).normal(size=(20, 128)).astype(np.float32))
    codec = BitCodec(rows.mean(axis=0))
    estimates = codec.estimates(*codec.encode(rows), queries)
    np.testing.assert_allclose(coded_elements(1)(rows) @ queries.T, estimates, atol=1e-5)


def test_rows_of_zeros_stay_out(rows: np.ndarray) -> None:
    padded = np.concatenate([np.zeros((100, 128), np.float32), rows])
    coded = coded_elements(1)(padded)
    assert not coded[:100].any()
    np.testing.assert_allclose(coded[100:], coded_elements(1)(rows), atol=1e-6)


def test_bytes_are_stated_with_the_factor() -> None:
    assert [element_bytes(128, bits) for bits in (32, 8, 4, 1)] == [512, 128, 64, 18]
    assert element_bytes(256, 1) == 34
