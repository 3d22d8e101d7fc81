"""A photo of any shape has one vector, alike for its copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.library.duplicates import AGREEMENT, FLOOR, find_candidates
from setnet.library.registration import Keypoints, agreement
from setnet.library.vlad import dense_sift, mirrored, photo_vlads, small_grey
from studies.alterations import ALTERATIONS, altered


def test_a_vlad_has_unit_length_and_a_flat_photo_none(selfie: Callable[[str], Any]) -> None:
    assert np.linalg.norm(photo_vlads(selfie("P001"))[0]) == pytest.approx(1.0, abs=1e-5)
    assert not photo_vlads(np.full((80, 120, 3), 128, np.uint8)).any()


def test_the_second_vlad_is_that_of_the_mirrored_photo(selfie: Callable[[str], Any]) -> None:
    photo = selfie("P001")
    turned = photo_vlads(np.ascontiguousarray(photo[:, ::-1]))
    assert np.allclose(photo_vlads(photo)[1], turned[0], atol=0.05)


@pytest.mark.parametrize("kind", list(ALTERATIONS))
def test_a_copy_is_a_candidate_and_agrees(kind: str, selfie: Callable[[str], Any]) -> None:
    photo = selfie("P001")
    copy = altered(photo, kind, seed=3)
    vlads = np.stack([photo_vlads(p) for p in (photo, copy, selfie("P003"))])
    found = [c for c in find_candidates(vlads) if (c.one, c.other) == (0, 1)]
    assert found, f"{vlads[0] @ vlads[1].T} are below {FLOOR}"
    best = found[0]
    assert best.mirrored == kind.startswith("mirrored")
    seen = copy[:, ::-1] if best.mirrored else copy
    keypoints = [Keypoints.of(small_grey(np.ascontiguousarray(p))) for p in (photo, seen, selfie("P003"))]
    assert agreement(keypoints[0], keypoints[1]) >= AGREEMENT
    assert agreement(keypoints[0], keypoints[2]) < AGREEMENT / 2


def test_many_vlads_are_compared_in_cells_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from setnet.library import duplicates

    rng = np.random.default_rng(0)
    first = rng.normal(size=(1000, 2, 256)).astype(np.float32)
    copies = first[:100] + 0.5 * rng.normal(size=(100, 2, 256)).astype(np.float32)
    copies[50:] = copies[50:, ::-1]  # mirrored
    vlads = np.concatenate([first, copies])
    vlads /= np.linalg.norm(vlads, axis=2, keepdims=True)
    exact = find_candidates(vlads)
    monkeypatch.setattr(duplicates, "_EXACT_PHOTOS", 500)
    assert {(c.one, c.other, c.mirrored) for c in find_candidates(vlads)} == {
        (c.one, c.other, c.mirrored) for c in exact
    }
    assert [(i, 1000 + i, i >= 50) in {(c.one, c.other, c.mirrored) for c in exact} for i in range(100)] == [
        True
    ] * 100


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
    assert max(grey.shape) * min(grey.shape) < 600_000
    assert dense_sift(grey).size
    assert not dense_sift(grey).any(), "a photo without contrast has no direction"
