from __future__ import annotations

import numpy as np
import pytest

from studies.alterations import ALTERATIONS, altered

PHOTO = np.random.default_rng(0).integers(0, 256, (100, 140, 3), dtype=np.uint8)


@pytest.mark.parametrize("kind", list(ALTERATIONS))
def test_a_copy_follows_from_its_seed_and_leaves_the_photo_alone(kind: str) -> None:
    before = PHOTO.copy()
    copy = altered(PHOTO, kind, 7)
    assert copy.dtype == np.uint8
    assert np.array_equal(altered(PHOTO, kind, 7), copy)
    assert not np.array_equal(copy, PHOTO)
    assert np.array_equal(PHOTO, before)


def test_crops_lose_what_their_names_say() -> None:
    for share in (5, 10, 20):
        rows, columns, _ = altered(PHOTO, f"cropped by {share} %", 1).shape
        assert (rows, columns) == (100 - share, round(140 * (1 - share / 100)))
