"""Degraded copies of photos."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from setnet.errors import InvalidInputError
from studies.degrade import KINDS, degrade_photos, degraded


@pytest.fixture
def photo() -> np.ndarray:
    """A smooth picture with some detail."""
    y, x = np.mgrid[:120, :100]
    return np.stack([(x * 2 + y) % 256, (y * 2) % 256, (x * y // 40) % 256], axis=2).astype(np.uint8)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_copy_differs_keeps_its_size_and_is_the_same_for_a_seed(photo: np.ndarray, kind: str) -> None:
    first, quality = degraded(photo, kind, 1)
    again, _ = degraded(photo, kind, 1)
    other, _ = degraded(photo, kind, 2)
    assert first.shape == photo.shape
    assert first.dtype == np.uint8
    assert 0 < quality <= 100
    assert np.array_equal(first, again)
    assert not np.array_equal(first, photo)
    assert not np.array_equal(first, other)


def test_every_photo_of_every_folder_is_copied(photo: np.ndarray, tmp_path: Path) -> None:
    for name in ("A/1.jpg", "A/2.jpg", "B/1.jpg"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / "in" / name), photo)
    assert degrade_photos(tmp_path / "in", tmp_path / "out") == 3
    copies = {str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in (tmp_path / "out").rglob("*.jpg")}
    assert sorted(copies) == ["A/1.jpg", "A/2.jpg", "B/1.jpg"]
    assert copies["A/1.jpg"] != copies["A/2.jpg"]  # each name has its own copy of the same picture


def test_what_cannot_be_degraded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="'coarse', 'shaken'"):
        degrade_photos(tmp_path, tmp_path / "out", "blurred")
    with pytest.raises(InvalidInputError, match="holds no"):
        degrade_photos(tmp_path, tmp_path / "out")
