"""How orthogonal people's descriptors are."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate import orthogonality
from setnet.evaluate.orthogonality import gram_difference, gram_draws
from setnet.evaluate.people import TrainTestSplit
from setnet.evaluate.record import mean_and_error


@pytest.mark.usefixtures("toy_people")
def test_orthogonality_of_known_directions(split: TrainTestSplit) -> None:
    rng = np.random.default_rng(0)
    random = rng.standard_normal((2000, 64))
    assert gram_difference(random) / (2000 / np.sqrt(64)) == pytest.approx(1.0, abs=0.03)
    assert np.mean(gram_draws(random)) == pytest.approx(gram_difference(random), rel=0.01)
    same = (
        np.ones((20, 4)) + 0.001 * np.repeat(rng.standard_normal((1, 4)), 20, axis=0) * np.arange(20)[:, None]
    )
    assert gram_difference(same) == pytest.approx(np.sqrt(20 * 19), rel=0.01), "all in one line: worst"
    record = orthogonality.run(orthogonality.Settings(methods=["mean"], repeats=2))
    # nobody has more than 100 faces: every repeat takes all of them, as the definition says
    rows, groups = split.test.descriptors, split.test.groups(2)
    means = np.stack([rows[group].mean(axis=0) for group in groups])
    literal = means / np.linalg.norm(means, axis=1, keepdims=True)
    literal = literal - literal.mean(axis=0)
    literal /= np.linalg.norm(literal, axis=1, keepdims=True)
    literal = np.linalg.norm(literal @ literal.T - np.eye(len(groups)))
    assert record.row("descriptor").values["plain"] == pytest.approx([literal] * 2, rel=1e-4)
    for kind in ("plain_ratio", "whitened_ratio"):
        assert 0.95 < mean_and_error(record.row("descriptor").values[kind])[0] < 1.3
