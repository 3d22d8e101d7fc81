"""The split of LFW: two halves that share nobody."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.people import half_of, read_split


def test_the_halves_share_nobody_and_hold_everybody() -> None:
    split = read_split()
    assert not split.train & split.test
    assert len(split.train | split.test) == 5749
    assert abs(len(split.train) - len(split.test)) <= 3


def test_rows_of_a_half() -> None:
    split = read_split()
    labels = np.array([min(split.train), min(split.test), "Nobody_Known", ""])
    assert half_of(labels, "train").tolist() == [True, False, False, False]
    assert half_of(labels, "test").tolist() == [False, True, False, False]
    with pytest.raises(InvalidInputError, match="'train', 'test'"):
        half_of(labels, "dev")
    with pytest.raises(InvalidInputError, match="none of the 1 labels"):
        half_of(np.array(["x"]), "test")
