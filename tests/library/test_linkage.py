"""Average linkage over a graph: SciPy's where all are neighbours, the reference's everywhere, and laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from setnet.engine.kernels import backend, reference
from setnet.heads import unit
from setnet.library.linkage import CannotLink, Clusters, LinkageRule, link
from setnet.library.neighbours import Neighbours, nearest_neighbours

Floats = NDArray[np.float32]
Groups = NDArray[np.int64]
compiled = pytest.mark.skipif(backend.kernels is reference, reason="the C extension is not built")


def faces(seed: int, people: int = 12, each: int = 6, noise: float = 0.25) -> Floats:
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(people, 24)).astype(np.float32))
    return unit(np.repeat(centres, each, axis=0) + rng.normal(0, noise, (people * each, 24)).astype("f4"))


def plain(n: int, threshold: float) -> LinkageRule:
    """Return the rule of ordinary average linkage: the mean similarity reaches a threshold."""
    return LinkageRule(0.0, 1.0, 1.0, 0.0, 0.03, np.full(n + 1, threshold))


def everyone(vectors: Floats) -> Neighbours:
    return nearest_neighbours(vectors, len(vectors), -2.0)


def same(one: Groups, other: Groups) -> bool:
    return bool(((one[:, None] == one) == (other[:, None] == other)).all())


def grouped(
    vectors: Floats, rule: LinkageRule, apart: CannotLink | None = None, k: int | None = None
) -> Groups:
    near = everyone(vectors) if k is None else nearest_neighbours(vectors, k, 0.0)
    return link(Clusters.of(vectors), near, apart or CannotLink.none(), rule)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("threshold", [0.2, 0.45, 0.8])
def test_it_is_scipys_average_linkage_where_all_are_neighbours(seed: int, threshold: float) -> None:
    vectors = faces(seed)
    apart = (1 - vectors @ vectors.T)[np.triu_indices(len(vectors), 1)].astype(np.float64)
    expected = fcluster(linkage(apart, "average"), 1 - threshold, "distance")
    assert same(grouped(vectors, plain(len(vectors), threshold)), expected)


def drawn(seed: int) -> tuple[Clusters, Neighbours, CannotLink, LinkageRule]:
    """Return clusters of some weights and names, pairs apart and a rule in which everything counts."""
    rng = np.random.default_rng(seed)
    vectors = faces(seed, people=int(rng.integers(2, 10)), noise=float(rng.uniform(0.05, 0.4)))
    n = len(vectors)
    clusters = Clusters.of(vectors, rng.uniform(0.2, 1.0, n))
    clusters.names[rng.random(n) < 0.1] = rng.integers(0, 3)
    clusters.names[rng.random(n) < 0.1] = rng.integers(0, 3)
    one, other = rng.integers(n, size=(2, n))
    one, other = one[one != other], other[one != other]
    weight = np.where(rng.random(len(one)) < 0.2, np.inf, 1.0).astype(np.float32)
    rule = LinkageRule(0.05, 0.15, 0.7, 2.0, 0.03, np.linspace(1.0, 2.5, n + 1))
    return clusters, nearest_neighbours(vectors, 6, -1.0), CannotLink(one, other, weight), rule


@compiled
@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_merges_as_the_reference_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    task = drawn(seed)
    fast = link(*task)
    monkeypatch.setattr(backend, "kernels", reference)
    assert same(fast, link(*task))
    assert len(np.unique(fast)) < len(fast), "nothing merged: this tries nothing"


@given(st.integers(0, 10_000))
def test_the_order_of_elements_does_not_matter(seed: int) -> None:
    vectors = faces(seed)
    order = np.random.default_rng(seed).permutation(len(vectors))
    rule = LinkageRule(0.0, 0.15, 0.8, 0.0, 0.03, np.linspace(1.5, 3.0, len(vectors) + 1))
    assert same(grouped(vectors, rule, k=8)[order], grouped(vectors[order], rule, k=8))


@given(st.integers(0, 10_000))
def test_certain_pairs_apart_and_two_names_never_share_a_group(seed: int) -> None:
    clusters, near, apart, rule = drawn(seed)
    groups = link(clusters, near, apart, replace(rule, bars=np.full(len(clusters) + 1, -np.inf)))
    never = np.isinf(apart.weight)
    assert (groups[apart.one[never]] != groups[apart.other[never]]).all()
    for group in np.unique(groups):
        assert len({*clusters.names[groups == group].tolist()} - {-1}) <= 1


def test_a_probable_pair_apart_keeps_look_alikes_apart_and_twins_of_a_mirror_together() -> None:
    rule = LinkageRule(0.0, 0.1, 1.0, 2.0, 0.03, np.full(3, 4.0))
    pair = CannotLink(np.array([0]), np.array([1]), np.ones(1, np.float32))
    for similarity, together in ((0.5, False), (0.7, True)):
        vectors = np.array([[1, 0], [similarity, np.sqrt(1 - similarity**2)]], np.float32)
        found = grouped(vectors, rule, pair)
        assert (found[0] == found[1]) is np.bool_(together)
        without = grouped(vectors, rule)
        assert without[0] == without[1]


@pytest.mark.parametrize(("each", "pairs", "together"), [(10, 1, True), (10, 5, False), (80, 2, True)])
def test_pairs_apart_count_for_more_than_their_share_and_isolated_ones_for_nothing(
    each: int, pairs: int, together: bool
) -> None:
    vectors = np.repeat(np.array([[1, 0], [0.7, np.sqrt(1 - 0.49)]], np.float32), each, axis=0)
    rule = LinkageRule(0.0, 0.1, 1.0, 1.0, 0.03, np.full(2 * each + 1, 5.8))
    apart = CannotLink(np.arange(pairs), each + np.arange(pairs), np.ones(pairs, np.float32))
    found = grouped(vectors, rule, apart)
    assert len(np.unique(found)) == (1 if together else 2)


def test_larger_clusters_need_less_similarity_where_the_rest_is_small() -> None:
    vectors = faces(3, people=2, each=10, noise=0.2)
    mean = float((vectors[:10] @ vectors[10:].T).mean())
    bar = np.full(21, (mean + 0.02) / 0.1)
    strict, lenient = (LinkageRule(0.0, 0.1, rest, 0.0, 0.03, bar) for rest in (1.0, 0.5))
    assert len(np.unique(grouped(vectors, strict))) == 2
    assert len(np.unique(grouped(vectors, lenient))) == 1


def test_an_exception_of_the_caller_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = faces(0, people=300, each=10)
    monkeypatch.setattr("setnet.library.linkage.LOOK_SECONDS", 0.0)

    def stop(merges: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        link(
            Clusters.of(vectors),
            nearest_neighbours(vectors, 50, -1.0),
            CannotLink.none(),
            plain(3000, 0.0),
            stop,
        )


def test_clusters_merged_have_the_sums_of_their_parts() -> None:
    clusters = Clusters.of(np.eye(4, dtype=np.float32), np.array([1.0, 0.5, 1.0, 1.0]))
    clusters.names[2] = 7
    merged = clusters.merged(np.array([1, 0, 1, 0]), 2)
    assert merged.sums.tolist() == [[0, 0.5, 0, 1], [1, 0, 1, 0]]
    assert merged.weights.tolist() == [1.5, 2.0]
    assert merged.sizes.tolist() == [2, 2]
    assert merged.names.tolist() == [-1, 7]


@compiled
@pytest.mark.parametrize("wrong", ["neighbour", "offsets", "bars"])
def test_arrays_that_do_not_fit_are_refused(wrong: str) -> None:
    n, start, near, bars = 3, np.array([0, 1, 2, 2]), np.array([1, 0], np.int32), np.zeros(4)
    if wrong == "neighbour":
        near = np.array([1, 3], np.int32)
    elif wrong == "offsets":
        start = np.array([0, 2, 1, 2])
    else:
        bars = np.zeros(3)
    nothing = np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
    clusters = Clusters.of(np.eye(3, dtype=np.float32))
    with pytest.raises(ValueError, match="do not fit"):
        backend.kernels.linkage(
            3, clusters.sums, clusters.weights, clusters.sizes, clusters.names, start, near, *nothing,
            0.0, 1.0, 1.0, 0.0, 0.03, bars, np.empty(n, np.int32), np.zeros(2, np.int64),
        )  # fmt: skip
