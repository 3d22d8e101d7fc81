"""Pairs of names and faces in a photo, compared with trying all ways to pair them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.library.name_solver import pair_shares


def tried(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how probable each pair is, by all ways to pair rows with columns."""
    rows, columns = odds.shape
    shares, total = np.zeros_like(odds), 0.0
    for chosen in product(range(-1, columns), repeat=rows):
        pairs = [(row, column) for row, column in enumerate(chosen) if column >= 0]
        if len({column for _, column in pairs}) == len(pairs):
            weight = float(np.prod([odds[pair] for pair in pairs]))
            total += weight
            for pair in pairs:
                shares[pair] += weight
    return shares / total


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (3, 2), (2, 4), (4, 4), (5, 1)])
def test_shares_are_those_of_all_ways_to_pair(shape: tuple[int, int]) -> None:
    odds = np.exp(4 * np.random.default_rng(sum(shape)).normal(size=shape))
    assert pair_shares(odds) == pytest.approx(tried(odds), abs=1e-12)


def test_many_names_are_paired_about_as_well() -> None:
    odds = np.full((9, 9), 0.1)
    np.fill_diagonal(odds, 1e4)
    assert (np.diag(pair_shares(odds)) > 0.99).all()
