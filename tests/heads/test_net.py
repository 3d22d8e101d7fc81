"""SetNet at run time: the laws of set vectors, the formula, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.heads import Head, Logistic, SetNet, codec, net
from setnet.heads.aggregator import Aggregator, unit
from setnet.heads.layers import Affine, Blocks, Input, NetVLAD, Product
from tests.support.soak import examples


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def vlad_head(bits: int = 32) -> Head:
    rng = np.random.default_rng(1)
    return Head(
        name="vlad",
        element_dim=16,
        bits=bits,
        logistic=Logistic(10.0, -3.0),
        branches=(NetVLAD(floats(rng, 16, 3), floats(rng, 3), floats(rng, 3, 16)),),
        input=Input(unit_last=False),
        output=(Affine(floats(rng, 48, 32), floats(rng, 32) * np.float32(0.1)), Affine(floats(rng, 32, 24))),
    )


def lift_head(bits: int = 1) -> Head:
    rng = np.random.default_rng(2)
    return Head(
        name="lift",
        element_dim=16,
        bits=bits,
        logistic=Logistic(20.0, -4.0),
        branches=(
            Product((floats(rng, 12, 78), floats(rng, 12, 78)), share=0.8),
            Product((floats(rng, 12, 26), floats(rng, 12, 26)), share=0.5),
            Product((floats(rng, 12, 24),), share=0.3),
        ),
        input=Input(floats(rng, 16) * np.float32(0.1), floats(rng, 16, 12)),
        output=(Blocks(floats(rng, 16, 8, 8)), Blocks(floats(rng, 8, 16, 8))),
    )


HEADS = [vlad_head(), vlad_head(8), lift_head(), lift_head(4), lift_head(16)]


@pytest.mark.parametrize("head", HEADS, ids=lambda h: f"{h.name}-{h.bits}")
def test_it_is_an_aggregator_with_stated_bytes(head: Head) -> None:
    made = SetNet(head)
    assert isinstance(made, Aggregator)
    codes = made.encode(floats(np.random.default_rng(0), 5, 16), [2, 0, 3])
    assert codes.shape == (3, made.bytes_per_item)
    assert codes.dtype == np.uint8


@settings(deadline=None, max_examples=examples(15))
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 9), which=st.sampled_from(HEADS))
def test_the_order_of_elements_does_not_matter(seed: int, size: int, which: Head) -> None:
    rng = np.random.default_rng(seed)
    elements = floats(rng, size, 16)
    made = SetNet(which)
    shuffled = made.pool(rng.permutation(elements), [size])
    np.testing.assert_allclose(made.pool(elements, [size]), shuffled, atol=2e-5)


@pytest.mark.parametrize("head", HEADS, ids=lambda h: f"{h.name}-{h.bits}")
def test_a_set_of_one_before_quantisation_is_the_query_descriptor(head: Head) -> None:
    elements = floats(np.random.default_rng(3), 7, 16)
    made = SetNet(head)
    np.testing.assert_array_equal(made.describe(elements), made.pool(elements, np.ones(7, int)))
    np.testing.assert_allclose(np.linalg.norm(made.describe(elements), axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("head", HEADS, ids=lambda h: f"{h.name}-{h.bits}")
def test_a_set_vector_is_the_sum_of_its_contributions(head: Head) -> None:
    net, rows = SetNet(head), np.random.default_rng(3).standard_normal((6, head.element_dim))
    added = net.contributions(rows)
    if added is None:
        assert any(isinstance(layer, Affine) and layer.bias is not None for layer in head.output)
        return
    np.testing.assert_allclose(unit(added[:2] + added[2:4]), net.pool(rows[[0, 2, 1, 3]], [2, 2]), atol=1e-5)


@pytest.mark.parametrize("head", HEADS, ids=lambda h: f"{h.name}-{h.bits}")
def test_aggregate_is_what_the_stored_bytes_say(head: Head) -> None:
    made = SetNet(head)
    elements = floats(np.random.default_rng(4), 12, 16)
    counts = [4, 1, 7]
    np.testing.assert_array_equal(
        made.aggregate(elements, counts), codec.decode(made.encode(elements, counts), made.dim, made.bits)
    )
    np.testing.assert_array_equal(
        made.encode(elements, counts), codec.encode(made.pool(elements, counts), made.bits)
    )


def test_netvlad_follows_equation_1_with_normalised_contributions() -> None:
    head = vlad_head()
    vlad = head.branches[0]
    assert isinstance(vlad, NetVLAD)
    elements = unit(floats(np.random.default_rng(5), 3, 16)).astype(np.float64)
    total = np.zeros(48)
    for x in elements:
        weights = np.exp(x @ vlad.a + vlad.b)
        weights /= weights.sum()
        residuals = np.concatenate([weights[k] * (x - vlad.c[k]) for k in range(3)])
        total += residuals / np.linalg.norm(residuals)
    v = total / np.linalg.norm(total)
    for layer in head.output:
        assert isinstance(layer, Affine)
        v = v @ layer.weight + (0 if layer.bias is None else layer.bias)
        v /= np.linalg.norm(v)
    np.testing.assert_allclose(SetNet(head).pool(elements, [3])[0], v, atol=1e-5)


def test_products_of_projections_square_the_similarity_on_average() -> None:
    rng = np.random.default_rng(6)
    x = unit(floats(rng, 1, 16))
    y = unit((x + 0.2 * floats(rng, 1, 16)).astype(np.float32))
    branch = Product((floats(rng, 16, 40_000), floats(rng, 16, 40_000)))
    similarity = float((unit(branch.lift(x)) * unit(branch.lift(y))).sum())
    assert similarity == pytest.approx(float((x @ y.T)[0, 0]) ** 2, abs=0.05)


def test_every_element_contributes_equally_whatever_its_length() -> None:
    elements = floats(np.random.default_rng(7), 2, 16)
    made = SetNet(vlad_head())
    scaled = elements * np.array([[1.0], [100.0]], np.float32)
    np.testing.assert_allclose(made.pool(elements, [2]), made.pool(scaled, [2]), atol=1e-5)


def test_many_sets_in_chunks_equal_each_set_alone() -> None:
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 5, 3 * net.CHUNK)
    counts[10] = 3 * net.CHUNK  # a crowd larger than a chunk
    elements = floats(rng, int(counts.sum()), 16)
    made = SetNet(lift_head())
    together = made.pool(elements, counts)
    ends = np.cumsum(counts)
    for i in (0, 9, 10, 11, 50, len(counts) - 1):
        own = elements[ends[i] - counts[i] : ends[i]]
        np.testing.assert_allclose(together[i], made.pool(own, [len(own)])[0], atol=3e-5)


def test_score_is_the_sum_of_logistic_scores() -> None:
    made = SetNet(vlad_head())
    rng = np.random.default_rng(9)
    sets, wanted = made.aggregate(floats(rng, 6, 16), [2, 4]), made.describe(floats(rng, 3, 16))
    expected = (1 / (1 + np.exp(-(10.0 * (sets @ wanted.T) - 3.0)))).sum(axis=1)
    np.testing.assert_allclose(made.score(sets, wanted), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("elements", "counts", "words"),
    [
        (np.ones((3, 15)), [3], "takes descriptors"),
        (np.ones((3, 16)), [2], "add up to 2"),
        (np.ones((3, 16)), [4, -1], "add up to 3"),
        (np.ones((3, 16)), [1.5, 1.5], "integers"),
        (np.full((1, 16), np.nan), [1], "element 0"),
    ],
)
def test_bad_input_is_named(elements: np.ndarray, counts: list[float], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        SetNet(vlad_head()).encode(elements, counts)


def test_score_refuses_vectors_of_another_head() -> None:
    with pytest.raises(InvalidInputError, match="do not fit head 'vlad'"):
        SetNet(vlad_head()).score(np.ones((2, 5)), np.ones((1, 24)))
