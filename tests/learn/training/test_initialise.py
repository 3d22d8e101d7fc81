from __future__ import annotations

import numpy as np
import pytest
import torch

from learn_people import descriptors
from setnet.errors import TrainingError
from setnet.learn.models.aggregators.netvlad import NetVLAD, NetVLADAggregator
from setnet.learn.models.aggregators.ragged import unit
from setnet.learn.training.initialise import initialise_aggregator, initialise_netvlad, kmeans, random_sets


def elements(people: int = 120, faces: int = 4, spread: float = 0.5) -> tuple[torch.Tensor, np.ndarray]:
    rows, labels = descriptors(people, faces, spread=spread)
    return unit(torch.from_numpy(rows)), labels.astype(np.int64)


def test_kmeans_finds_separate_clusters() -> None:
    centres = 10 * torch.eye(4)
    points = centres.repeat_interleave(30, 0) + 0.1 * torch.randn(
        120, 4, generator=torch.Generator().manual_seed(0)
    )
    found = kmeans(points, 4, seed=0)
    assert torch.cdist(centres, found).min(1).values.max() < 0.2


def test_the_soft_assignment_starts_as_a_softmax_of_distances_to_the_centres() -> None:
    x, _ = elements()
    vlad = NetVLAD(32, 4)
    alpha = initialise_netvlad(vlad, x, alpha=None)
    assert alpha > 0
    distances = torch.cdist(x, vlad.c) ** 2
    expected = torch.softmax(-alpha * distances, 1)
    torch.testing.assert_close(torch.softmax(x @ vlad.a.T + vlad.b, 1), expected, atol=1e-4, rtol=1e-3)


def test_batch_norm_starts_with_the_statistics_of_the_data() -> None:
    x, labels = elements()
    made = NetVLADAggregator(32, 16, clusters=4)
    initialise_aggregator(made, x, labels, number=1000)
    made.eval()
    indices, counts = random_sets(labels, (1, 2, 3), 1000, np.random.default_rng(0))
    with torch.no_grad():
        normed = made.norm(made.fc(made.vlad(x[indices], torch.from_numpy(counts))))
    assert normed.mean(0).abs().max() < 1e-3
    assert (normed.std(0) - 1).abs().max() < 1e-2
    torch.testing.assert_close(made.fc.weight @ made.fc.weight.T, torch.eye(16), atol=1e-4, rtol=0)


def first_rank_share(made: NetVLADAggregator, x: torch.Tensor, labels: np.ndarray) -> float:
    """Share of queries whose own set of three comes first among 100."""
    people = np.arange(90).reshape(30, 3)
    rows = np.array([[np.flatnonzero(labels == p)[0] for p in group] for group in people]).ravel()
    faces = np.array([np.flatnonzero(labels == p)[1] for p in people.ravel()])
    made.eval()
    with torch.no_grad():
        sets = made(x[rows], torch.full((30,), 3))
        queries = made.describe(x[faces])
    return float(((queries @ sets.T).argmax(1).numpy() == np.arange(90) // 3).mean())


def test_the_untrained_head_is_at_least_as_good_as_a_random_projection() -> None:
    x, labels = elements(spread=0.6)
    started, random = NetVLADAggregator(32, 16, clusters=8), NetVLADAggregator(32, 16, clusters=8)
    torch.manual_seed(0)
    initialise_aggregator(started, x, labels, number=2000)
    initialise_netvlad(random.vlad, x)
    torch.nn.init.normal_(random.fc.weight)
    assert first_rank_share(started, x, labels) >= first_rank_share(random, x, labels)
    assert first_rank_share(started, x, labels) > 10 / 30


def test_too_little_data_is_said() -> None:
    x, labels = elements(people=3, faces=2)
    with pytest.raises(TrainingError, match="k-means needs at least 8"):
        initialise_aggregator(NetVLADAggregator(32, 16, clusters=8), x, labels)
    x, labels = elements(people=20, faces=2)
    with pytest.raises(TrainingError, match="PCA to 64 dimensions needs more than 64 sets, got 40"):
        initialise_aggregator(NetVLADAggregator(32, 64, clusters=8), x, labels, number=40)
