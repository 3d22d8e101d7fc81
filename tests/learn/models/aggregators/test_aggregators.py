from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import InvalidInputError, ModelError
from setnet.learn.models.aggregators.aggregator_module import AggregatorModule
from setnet.learn.models.aggregators.pooling import AverageBeforeFC, GeneralisedMean
from setnet.learn.models.backbones.backbone import make_backbone
from setnet.learn.models.network import AGGREGATORS, SetNetwork, make_aggregator

DIM = 16


def aggregator(name: str) -> AggregatorModule:
    torch.manual_seed(0)
    backbone = make_backbone("mobile", DIM, size=32, width=0.25)
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


@pytest.mark.parametrize("name", [n for n in AGGREGATORS if n != "muvera"])
def test_a_set_of_one_is_its_query_vector(name: str) -> None:
    made = aggregator(name)
    x = elements(made, 4)
    torch.testing.assert_close(made(x, torch.ones(4, dtype=torch.long)), made.describe(x))


@pytest.mark.parametrize("name", [n for n in AGGREGATORS if n != "sum"])
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


def test_a_query_finds_its_bucket_in_muvera() -> None:
    torch.manual_seed(0)
    made = make_aggregator("muvera", make_backbone("descriptors", DIM), dim=256)
    x = elements(made, 40).float()
    counts = torch.full((10,), 4)
    similarity = made.describe(x) @ made(x, counts).T
    assert (similarity.argmax(1) == torch.arange(40) // 4).float().mean() > 0.8


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
        make_aggregator("before-fc", make_backbone("descriptors", DIM))


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(InvalidInputError, match="'netvlad'"):
        make_aggregator("vlad", make_backbone("descriptors", DIM))


def test_a_network_refuses_an_aggregator_of_another_width() -> None:
    small = make_aggregator("average", make_backbone("descriptors", 8))
    with pytest.raises(ModelError, match="takes 8 dimensions"):
        SetNetwork(make_backbone("descriptors", DIM), small)
