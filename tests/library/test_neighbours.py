"""The self-join finds the nearest neighbours: all of them in small indexes, nearly all in cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet.heads import unit
from setnet.library import neighbours as module
from setnet.library.neighbours import Neighbours, cells_of, nearest_neighbours

Floats = NDArray[np.float32]


def people(rng: np.random.Generator, count: int, faces: int, dim: int = 32) -> Floats:
    centres = unit(rng.normal(size=(count, dim)).astype(np.float32))
    return unit(np.repeat(centres, faces, axis=0) + rng.normal(0, 0.08, (count * faces, dim)).astype("f4"))


def brute_force(vectors: Floats, k: int, floor: float) -> list[list[int]]:
    table = vectors @ vectors.T
    np.fill_diagonal(table, -np.inf)
    ranked = np.argsort(-table, axis=1, kind="stable")[:, :k]
    return [[j for j in row.tolist() if table[i, j] >= floor] for i, row in enumerate(ranked)]


def lists(found: Neighbours) -> list[list[int]]:
    return [found.other[a:z].tolist() for a, z in zip(found.start[:-1], found.start[1:], strict=True)]


@given(st.integers(0, 60), st.integers(1, 9), st.floats(-0.5, 0.9), st.integers(0, 1000))
def test_all_compared_with_all_is_brute_force(n: int, k: int, floor: float, seed: int) -> None:
    vectors = unit(np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32))
    assert lists(nearest_neighbours(vectors, k, floor)) == brute_force(vectors, k, floor)


def test_blocks_and_crowds_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = people(np.random.default_rng(1), 20, 15)
    expected = lists(nearest_neighbours(vectors, 5, 0.1))
    monkeypatch.setattr(module, "ROWS", 7)
    monkeypatch.setattr(module, "COLUMNS", 31)
    monkeypatch.setattr(module, "CROWDED", 0)  # every block picks its largest first
    assert lists(nearest_neighbours(vectors, 5, 0.1)) == expected


def test_similarities_are_those_of_the_pairs_in_descending_order() -> None:
    vectors = people(np.random.default_rng(2), 10, 6)
    found = nearest_neighbours(vectors, 4, 0.3)
    np.testing.assert_allclose(
        found.similarity, np.einsum("ij,ij->i", vectors[found.row], vectors[found.other]), atol=1e-6
    )
    rows = np.split(found.similarity, found.start[1:-1])
    assert all((np.diff(row) <= 0).all() for row in rows)


def test_the_neighbours_of_some_rows_are_those_rows_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = people(np.random.default_rng(3), 12, 5)
    some = np.array([3, 17, 55, 20])
    every = lists(nearest_neighbours(vectors, 6, 0.2))
    assert lists(nearest_neighbours(vectors, 6, 0.2, rows=some)) == [every[row] for row in some]


def test_cells_find_nearly_all_that_is_similar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELL", 40)
    vectors = people(np.random.default_rng(4), 300, 10, dim=64)
    exact, in_cells = (
        nearest_neighbours(vectors, 9, 0.5, exact=exact, probes=8) for exact in (len(vectors), 0)
    )
    wanted, found = ({*zip(n.row.tolist(), n.other.tolist(), strict=True)} for n in (exact, in_cells))
    assert len(found & wanted) >= 0.95 * len(wanted) > 0


def test_looking_into_all_cells_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELL", 20)
    vectors = people(np.random.default_rng(5), 30, 8)
    in_cells = nearest_neighbours(vectors, 7, 0.2, exact=0, probes=1000)
    assert lists(in_cells) == brute_force(vectors, 7, 0.2)


def test_copies_of_one_vector_are_neighbours_of_each_other() -> None:
    vectors = np.repeat(unit(np.ones((1, 4), np.float32)), 50, axis=0)
    found = nearest_neighbours(vectors, 3, 0.9)
    assert np.diff(found.start).tolist() == [3] * 50
    assert (found.row != found.other).all()


def test_progress_counts_up_to_all_rows() -> None:
    vectors = people(np.random.default_rng(6), 5, 5)
    said: list[tuple[int, int]] = []
    nearest_neighbours(vectors, 3, 0.5, progress=lambda done, total: said.append((done, total)))
    assert said[-1] == (25, 25)


@pytest.mark.parametrize("count", [1, 3, 50])
def test_each_vector_is_in_one_cell(count: int) -> None:
    vectors = people(np.random.default_rng(7), 10, 5)
    cells, centres = cells_of(vectors, count)
    assert sorted(np.concatenate(cells).tolist()) == list(range(50))
    assert len(cells) == len(centres) == count
