from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import InvalidInputError, ModelError
from setnet.train.aggregators import (
    AggregatorModule,
    AverageBeforeFC,
    GeneralisedMean,
    NetVLAD,
    NetVLADAggregator,
    WhiteningLayer,
    check_counts,
    ragged_mean,
    ragged_sum,
    unit,
)
from setnet.train.backbones import Descriptors, SmallCNN
from setnet.train.network import AGGREGATORS, SetNetwork, make_aggregator


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(0, 100))
def test_sums_and_means_are_those_of_each_set_alone(counts: list[int], seed: int) -> None:
    rows = torch.randn(sum(counts), 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    sizes = torch.tensor(counts)
    for one, total, mean in zip(
        torch.split(rows, counts), ragged_sum(rows, sizes), ragged_mean(rows, sizes), strict=True
    ):
        torch.testing.assert_close(total, one.sum(0))
        torch.testing.assert_close(mean, one.mean(0))


@pytest.mark.parametrize(
    ("counts", "message"),
    [([2, 2], "add up to 4 but there are 3"), ([3, 0], "positive"), ([[3]], "positive")],
)
def test_counts_that_do_not_fit_are_refused(counts: list[int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_counts(torch.zeros(3, 2), torch.tensor(counts))


def test_zero_rows_stay_zero_and_have_a_gradient() -> None:
    x = torch.zeros(1, 4, requires_grad=True)
    torch.autograd.backward(unit(x).sum())
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


DIM = 16


def aggregator(name: str) -> AggregatorModule:
    torch.manual_seed(0)
    backbone = SmallCNN(DIM, size=32, width=0.25)
    made = make_aggregator(name, backbone, dim=12, clusters=3).eval()
    return made.double()


def elements(made: AggregatorModule, n: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(
        torch.randn(n, made.element_dim, generator=generator, dtype=torch.float64)
    )


@pytest.mark.parametrize("name", AGGREGATORS)
@settings(max_examples=10, deadline=None)
@given(order=st.permutations(list(range(5))), seed=st.integers(0, 50))
def test_the_order_of_the_elements_does_not_matter(name: str, order: list[int], seed: int) -> None:
    made = aggregator(name)
    x = elements(made, 5, seed)
    counts = torch.tensor([5])
    torch.testing.assert_close(made(x[order], counts), made(x, counts))


@pytest.mark.parametrize("name", AGGREGATORS)
def test_a_set_is_the_same_alone_and_in_a_batch_of_other_sizes(name: str) -> None:
    made = aggregator(name)
    x = elements(made, 9)
    together = made(x, torch.tensor([2, 4, 3]))
    torch.testing.assert_close(together[1], made(x[2:6], torch.tensor([4]))[0])


@pytest.mark.parametrize("name", AGGREGATORS)
def test_a_set_of_one_is_its_query_vector(name: str) -> None:
    made = aggregator(name)
    x = elements(made, 4)
    torch.testing.assert_close(made(x, torch.ones(4, dtype=torch.long)), made.describe(x))


@pytest.mark.parametrize("name", AGGREGATORS)
def test_set_vectors_have_unit_norm(name: str) -> None:
    made = aggregator(name)
    norms = made(elements(made, 6), torch.tensor([1, 2, 3])).norm(dim=1)
    torch.testing.assert_close(norms, torch.ones_like(norms))


@pytest.mark.parametrize("name", AGGREGATORS)
def test_wrong_counts_are_refused(name: str) -> None:
    made = aggregator(name)
    with pytest.raises(InvalidInputError, match="counts"):
        made(elements(made, 3), torch.tensor([2]))


def test_a_memory_vector_answers_alike_for_all_its_members() -> None:
    made = aggregator("memory")
    x = elements(made, 4)
    similarities = x @ made(x, torch.tensor([4]))[0]
    assert similarities.std() < 0.02 * similarities.mean()


def test_generalised_mean_follows_its_formula_and_learns_p_per_dimension() -> None:
    made = aggregator("gem-per-dim")
    assert isinstance(made, GeneralisedMean)
    made.p.data = torch.linspace(1.0, 4.0, DIM, dtype=torch.float64)
    x = elements(made, 3)
    p = made.p.detach().numpy()
    literal = (np.mean(np.abs(x.numpy()) ** p, axis=0)) ** (1 / p)
    literal /= np.linalg.norm(literal)
    np.testing.assert_allclose(made(x, torch.tensor([3]))[0].detach().numpy(), literal, rtol=1e-9)
    assert made.p.shape == (DIM,)
    assert aggregator("gem").p.shape == (1,)


def test_gradients_of_the_generalised_mean() -> None:
    made = aggregator("gem-per-dim")
    assert isinstance(made, GeneralisedMean)
    x = elements(made, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda e, p: _with_p(made, p)(e, torch.tensor([2, 3])), (x, made.p))


def test_an_exponent_beyond_its_range_comes_back_and_goes_on_learning() -> None:
    made = aggregator("gem-per-dim")
    assert isinstance(made, GeneralisedMean)
    made.p.data = torch.where(torch.arange(DIM) % 2 == 0, 0.2, 9.0).double()
    made.train()(elements(made, 5), torch.tensor([2, 3])).sum().backward()
    assert set(made.p.detach().tolist()) == {1.0, 6.0}
    assert made.p.grad is not None
    assert (made.p.grad != 0).all()


def _with_p(made: AggregatorModule, p: torch.Tensor) -> AggregatorModule:
    del made._parameters["p"]
    made._parameters["p"] = p  # type: ignore[assignment]
    return made


def test_before_fc_averages_normalised_features_then_applies_the_layer() -> None:
    made = aggregator("before-fc")
    assert isinstance(made, AverageBeforeFC)
    x = 3 * elements(made, 2)
    x[1] *= 10  # a long feature weighs no more than a short one
    mean = torch.nn.functional.normalize(x).mean(0)
    expected = torch.nn.functional.normalize(made.fc(mean), dim=0)
    torch.testing.assert_close(made(x, torch.tensor([2]))[0], expected)


def test_descriptors_have_no_layer_before_the_last() -> None:
    with pytest.raises(ModelError, match="last layer"):
        make_aggregator("before-fc", Descriptors(DIM))


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(InvalidInputError, match="'netvlad'"):
        make_aggregator("vlad", Descriptors(DIM))


def test_a_network_refuses_an_aggregator_of_another_width() -> None:
    small = make_aggregator("average", Descriptors(8))
    with pytest.raises(ModelError, match="takes 8 dimensions"):
        SetNetwork(Descriptors(DIM), small)


def literal_netvlad(x: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Equation 1, loop by loop, each face's contribution normalised, then the vector normalised."""
    total = np.zeros((len(a), x.shape[1]))
    for face in x:
        weights = np.array([np.exp(a[k] @ face + b[k]) for k in range(len(a))])
        weights /= weights.sum()
        part = np.array([weights[k] * (face - c[k]) for k in range(len(a))])
        total += part / np.linalg.norm(part)
    return (total / np.linalg.norm(total)).ravel()


def vlad(seed: int = 0) -> NetVLAD:
    torch.manual_seed(seed)
    made = NetVLAD(6, 4).double()
    made.b.data.normal_()
    return made


def test_it_is_equation_1_with_normalised_contributions() -> None:
    made = vlad()
    x = torch.randn(5, 6, dtype=torch.float64)
    a, b, c = (t.detach().numpy() for t in (made.a, made.b, made.c))
    ours = made(x, torch.tensor([2, 3])).detach().numpy()
    np.testing.assert_allclose(ours[0], literal_netvlad(x[:2].numpy(), a, b, c), rtol=1e-10)
    np.testing.assert_allclose(ours[1], literal_netvlad(x[2:].numpy(), a, b, c), rtol=1e-10)


def test_every_face_contributes_the_same_length() -> None:
    made = vlad()
    x = torch.randn(7, 6, dtype=torch.float64) * torch.logspace(-2, 2, 7, dtype=torch.float64)[:, None]
    lengths = made.contributions(x).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


def test_gradients_reach_elements_and_all_three_parameters() -> None:
    made = vlad()
    x = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([1, 4])

    def run(e: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = torch.func.functional_call(made, {"a": a, "b": b, "c": c}, (e, counts))
        return out

    assert torch.autograd.gradcheck(run, (x, made.a, made.b, made.c))


def test_the_aggregator_is_netvlad_fc_batch_norm_and_l2() -> None:
    torch.manual_seed(1)
    made = NetVLADAggregator(6, 5, clusters=4).double()
    x, counts = torch.randn(8, 6, dtype=torch.float64), torch.tensor([3, 5])
    assert made.norm.running_mean is not None
    assert made.norm.running_var is not None
    made.norm.running_mean.normal_()
    made.eval()
    pooled = made.vlad(x, counts) @ made.fc.weight.T
    normed = (pooled - made.norm.running_mean) / torch.sqrt(made.norm.running_var + made.norm.eps)
    expected = normed / normed.norm(dim=1, keepdim=True)
    torch.testing.assert_close(made(x, counts), expected)


def test_whitened_vectors_are_uncorrelated_before_l2_and_unit_after() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2000, 6, generator=generator) @ torch.randn(6, 6, generator=generator) + 3
    fit = WhiteningLayer.fit(rows, ridge=0.0)
    flat = (rows - fit.mean) @ fit.matrix
    torch.testing.assert_close(torch.cov(flat.T), torch.eye(6), atol=1e-3, rtol=0)
    norms = fit(rows).norm(dim=1)
    torch.testing.assert_close(norms, torch.ones_like(norms))


def test_a_direction_without_variance_is_not_blown_up() -> None:
    rows = torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    rows[:, 3] *= 1e-6
    assert WhiteningLayer.fit(rows).matrix.abs().max() < 20


def test_too_few_vectors_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs more than 8 vectors, got 8"):
        WhiteningLayer.fit(torch.randn(8, 8))
