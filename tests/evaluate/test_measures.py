"""nDCG as in equation 3, against its definition and against an independent library."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.evaluate.measures import dcg, first_full_match, full_match_recall, ndcg


def test_dcg_is_equation_3() -> None:
    relevance = [2, 0, 1, 3]
    expected = sum((2**r - 1) / math.log2(i + 1) for i, r in enumerate(relevance[:3], start=1))
    assert float(dcg(relevance, 3)) == pytest.approx(expected)


@settings(deadline=None, max_examples=50)
@given(relevance=st.lists(st.integers(0, 3), min_size=2, max_size=30), seed=st.integers(0, 99))
def test_ndcg_agrees_with_ir_measures(relevance: list[int], seed: int) -> None:
    if not any(relevance):
        relevance[0] = 1
    order = np.random.default_rng(seed).permutation(len(relevance))
    truth = {
        "q": {f"d{i}": 2**r - 1 for i, r in enumerate(relevance)}
    }  # its gain is linear, ours exponential
    run = {"q": {f"d{i}": float(len(order) - rank) for rank, i in enumerate(order.tolist())}}
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], truth, run)[ir_measures.nDCG @ 10]
    ranked = np.array(relevance)[order]
    assert float(ndcg(ranked, relevance, 10)) == pytest.approx(100 * theirs, abs=1e-6)


def test_ndcg_takes_many_queries_at_once() -> None:
    ranked, truth = np.array([[2, 1], [0, 1]]), np.array([[1, 2, 0], [0, 1, 0]])
    values = ndcg(ranked, truth, 2)
    assert values[0] == pytest.approx(100.0)
    assert values[1] == pytest.approx(100 / math.log2(3))


def test_a_query_without_any_match_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least one relevant item"):
        ndcg([0, 0], [0, 0, 0], 10)


def test_full_matches() -> None:
    ranked, truth = [1, 2, 0, 2], [2, 2, 2, 1, 0]
    assert float(full_match_recall(ranked, truth, people=2, n=4)) == pytest.approx(100 * 2 / 3)
    assert float(first_full_match(ranked, 2)) == 2.0
    assert float(first_full_match([1, 1], 2)) == math.inf
