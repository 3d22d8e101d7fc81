"""Codes of set vectors: a set without elements has one too."""

import numpy as np
import pytest

from setnet.heads import codec


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bits", codec.BITS)
def test_the_zero_vector_and_tiny_ones_are_encoded_without_overflow(bits: int) -> None:
    rows = np.array([[0, 0, 0, 0], [1e-38, 0, 0, 0], [3, -4, 0, 0]], np.float32)
    codes = codec.encode(rows, bits)
    assert np.isfinite(codec.decode(codes, 4, bits)).all()
    if bits == 8:
        assert codes[0].tolist() == [128] * 4
