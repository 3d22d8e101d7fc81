"""Faces made clearer: what the changes do to pixels, and how true matches are counted."""

from __future__ import annotations

import numpy as np
import pytest

from studies.enhancement import CHANGES, Described, true_matches

CROP = np.random.default_rng(0).integers(90, 200, (112, 112, 3)).astype(np.uint8)


def test_only_dark_crops_are_brightened() -> None:
    dark = (CROP * 0.2).astype(np.uint8)
    assert np.array_equal(CHANGES["brightened"](CROP), CROP)
    assert 0.35 < CHANGES["brightened"](dark).mean() / 255 < 0.5
    assert CHANGES["brightened"](np.zeros_like(CROP)).max() == 0


@pytest.mark.parametrize("name", ["equalised", "sharpened"])
def test_a_change_raises_contrast_and_keeps_the_form(name: str) -> None:
    changed = CHANGES[name]((CROP * 0.5).astype(np.uint8))
    assert changed.shape == CROP.shape
    assert changed.std() > (CROP * 0.5).std()


def test_true_matches_are_counted_above_the_pairs_of_different_people() -> None:
    rng = np.random.default_rng(1)
    people = rng.standard_normal((150, 64))
    owner = np.repeat(np.arange(150), 2)

    def faces(spread: float) -> Described:
        vectors = people[owner] + spread * rng.standard_normal((300, 64))
        return Described(owner, np.arange(300), {"as it is": vectors.astype(np.float32)})

    examples = faces(0.3)
    close, owners = true_matches(examples, faces(0.3), ["as it is"])
    far, _ = true_matches(examples, faces(3.0), ["as it is"])
    assert len(close) == 300, "one other photo of each person's"
    assert owners[0] == [0]
    assert close.mean() == 1
    assert far.mean() < 0.6
