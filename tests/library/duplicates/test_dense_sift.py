from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setnet.library.vlad import dense_sift, mirrored, small_grey


@given(st.integers(0, 2**32), st.integers(10, 300), st.integers(10, 300))
def test_descriptors_of_the_mirrored_photo_follow_from_those_of_the_photo(
    seed: int, rows: int, columns: int
) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (rows, columns, 3), dtype=np.uint8)
    grey = small_grey(noise)
    turned = dense_sift(np.ascontiguousarray(grey[:, ::-1]))
    assert np.allclose(mirrored(dense_sift(grey)), turned, atol=1e-4)


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_a_photo_of_any_shape_has_patches(rows: int, columns: int) -> None:
    grey = small_grey(np.zeros((rows, columns, 3), np.uint8))
    assert min(grey.shape) >= 49
    assert max(grey.shape) * min(grey.shape) < 400_000
    assert dense_sift(grey).size
    assert not dense_sift(grey).any(), "a photo without contrast has no direction"
