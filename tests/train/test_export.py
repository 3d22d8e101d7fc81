from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from setnet.errors import InvalidInputError, ModelError
from setnet.faces import load_descriptor
from setnet.heads import SetNet
from setnet.train.aggregators import initialise_aggregator, unit
from setnet.train.backbones import Descriptors, SmallCNN
from setnet.train.network import (
    NetworkAggregator,
    SetNetwork,
    export_network,
    make_aggregator,
    make_head,
)
from setnet.train.stages import whiten
from tests.support.learn_people import descriptors, pattern


def network(name: str, place: str | None) -> tuple[SetNetwork, np.ndarray, np.ndarray]:
    torch.manual_seed(0)
    rows, labels = descriptors(60, 4)
    elements = unit(torch.from_numpy(rows))
    backbone = Descriptors(32)
    made = SetNetwork(backbone, make_aggregator(name, backbone, 24, 4), w=12.0, b=-4.0).eval()
    if name == "netvlad":
        initialise_aggregator(made.aggregator, elements, labels.astype(int), number=500)  # type: ignore[arg-type]
        made.aggregator.norm.bias.data.normal_()  # type: ignore[union-attr, operator]
    if place is not None:
        whiten(made, elements, labels.astype(int), (1, 2, 3), place)
    return made.eval(), rows, labels


@pytest.mark.parametrize(
    ("name", "place"),
    [("netvlad", None), ("netvlad", "after"), ("average", None), ("average", "before"), ("average", "after")],
)
def test_the_numpy_head_equals_the_torch_network(tmp_path: Path, name: str, place: str | None) -> None:
    made, rows, _ = network(name, place)
    written = export_network(made, tmp_path, "test", "made-up", {"why": "test"})
    assert written.backbone is None
    net = SetNet.load(written.head)
    counts = np.array([1, 2, 3, 4, 50] * 4)
    theirs = NetworkAggregator(made, "torch")
    elements = unit(torch.from_numpy(rows[: counts.sum()])).numpy()
    np.testing.assert_allclose(net.aggregate(elements, counts), theirs.pool(elements, counts), atol=1e-4)
    np.testing.assert_allclose(net.describe(elements), theirs.describe(elements), atol=1e-4)
    assert (net.logistic.w, net.logistic.b) == (12.0, -4.0)
    assert net.head.about["why"] == "test"
    assert net.head.descriptor == "made-up"


def test_a_head_refuses_other_descriptors(tmp_path: Path) -> None:
    made, _, _ = network("netvlad", None)
    net = SetNet.load(export_network(made, tmp_path, "test", "made-up", {}).head)
    with pytest.raises(InvalidInputError, match=r"takes descriptors \(n, 32\) \(made-up\)"):
        net.describe(np.zeros((2, 64), np.float32))


def test_comparison_methods_have_no_run_time_form() -> None:
    made, _, _ = network("gem", None)
    with pytest.raises(ModelError, match=r"'netvlad' or an 'average'.*network\.safetensors"):
        make_head(made, "test", "", {})


@pytest.mark.xdist_group("onnx-export")
def test_the_onnx_backbone_finds_the_descriptors_of_the_torch_one(tmp_path: Path) -> None:
    torch.manual_seed(0)
    backbone = SmallCNN(16, size=32, width=0.25).eval()
    for module in backbone.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]
    made = SetNetwork(backbone, make_aggregator("average", backbone))
    written = export_network(made, tmp_path, "small", "", {})
    assert written.entry is not None
    model = load_descriptor(str(written.entry))
    crops = [pattern(person, 0, 32) for person in range(5)]
    images = (torch.from_numpy(np.stack(crops)).permute(0, 3, 1, 2).float() - 127.5) / 64
    with torch.no_grad():
        ours = unit(backbone(images)).numpy()
    np.testing.assert_allclose(model.describe(crops), ours, atol=1e-4)
    assert SetNet.load(written.head).head.descriptor == model.name == "small-faces"


def test_whitening_signs_away_is_refused_before_a_generalised_mean() -> None:
    with pytest.raises(InvalidInputError, match=r"only be whitened after aggregation: .* signs"):
        network("gem", "before")


def test_whitening_is_refused_before_netvlads_centres() -> None:
    with pytest.raises(InvalidInputError, match=r"only be whitened after aggregation: its centres"):
        network("netvlad", "before")
