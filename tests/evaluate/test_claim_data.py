"""How sets are kept in the claim's comparison."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from setnet.evaluate.claim_data import CachedPooling
from setnet.evaluate.representations import SetVectors
from setnet.evaluate.stress_trial import StressTest, StressWorld
from setnet.train import NetworkAggregator, SetNetwork
from setnet.train.aggregators import WhiteningLayer
from setnet.train.backbones import Descriptors
from setnet.train.network import make_aggregator

pytestmark = pytest.mark.usefixtures("one_thread")


def test_vectors_pooled_once_are_those_of_each_whitening(world: StressWorld) -> None:
    backbone = Descriptors(128)
    torch.manual_seed(0)
    network = SetNetwork(backbone, make_aggregator("netvlad", backbone, 16, 2)).eval()
    pooled, test = CachedPooling(network), StressTest(world)
    some = torch.from_numpy(world.descriptors[:200])
    for whitening in (None, WhiteningLayer.fit(network.describe(some).detach())):
        network.after = whitening
        plain = SetVectors(NetworkAggregator(network, "plain"))
        for one, other in zip(pooled.similarities(test), plain.similarities(test), strict=True):
            np.testing.assert_allclose(one.pair(0, 3), other.pair(0, 3), atol=1e-5)
        assert network.after is whitening
