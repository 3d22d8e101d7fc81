from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from setnet.errors import InvalidInputError, TrainingError
from setnet.train import load_settings
from setnet.train.aggregators import unit
from setnet.train.backbones import Backbone, InputSpec
from setnet.train.faces import FaceArray
from setnet.train.network import SetNetwork, make_aggregator
from setnet.train.settings import TrainingSettings
from studies.adaptation import SETTINGS
from studies.distillation import FeatureSource, adapt
from studies.features import cache_features

PEOPLE, DIM, WIDTH = 40, 16, 24
SPEC = InputSpec(8, (127.5,) * 3, (64.0,) * 3)


class End(Backbone):
    """A norm and a linear layer: what is left of a network when its blocks are frozen."""

    spec = SPEC

    def __init__(self) -> None:
        super().__init__(WIDTH, DIM)
        self.norm = nn.BatchNorm2d(WIDTH)
        self.reduce = nn.Linear(WIDTH, DIM)

    def features(self, images: Tensor) -> Tensor:
        out: Tensor = self.norm(images).mean((2, 3))
        return out


def network() -> SetNetwork:
    torch.manual_seed(0)
    end = End()
    return SetNetwork(end, make_aggregator("average", end)).eval()


def source(made: SetNetwork) -> FeatureSource:
    """Return photos, one per person, and copies in which some channels are spoiled."""
    rng = np.random.default_rng(0)
    photos = rng.standard_normal((PEOPLE, WIDTH, 1, 1)).astype(np.float16)
    copies = photos.copy()
    copies[:, : WIDTH // 3] = 1.5
    features = np.concatenate([photos, copies])
    with torch.no_grad():
        targets = made.elements(torch.from_numpy(photos.astype(np.float32))).repeat(2, 1)
    return FeatureSource(features, np.tile(np.arange(PEOPLE), 2), targets)


def settings(*changes: str) -> TrainingSettings:
    own = ["sets.identities=20", "sets.steps=60", "sets.rate=0.05", "sets.save_every=20"]
    return load_settings(SETTINGS, [*own, *changes])


def similarity(made: SetNetwork, some: FeatureSource) -> float:
    with torch.no_grad():
        found = made.elements(some.load(np.arange(PEOPLE, 2 * PEOPLE), None))
    return float((found * some.targets[PEOPLE:]).sum(1).mean())


@pytest.mark.parametrize("distil", [0.5, 1.0])
def test_copies_come_nearer_to_their_photos(tmp_path: Path, distil: float) -> None:
    made = network()
    some = source(made)
    before = similarity(made, some)
    statistics = made.state_dict()["backbone.norm.running_mean"].clone()
    report = adapt(made, some, settings(), tmp_path, distil)
    assert report.steps == 60
    assert similarity(made, some) > before + 0.05
    now = made.state_dict()["backbone.norm.running_mean"]
    assert torch.equal(now, statistics), "batch norm keeps its statistics"
    assert not made.training


def test_weights_are_drawn_back_to_where_they_were(tmp_path: Path) -> None:
    moved = []
    for name, decay in (("free", 0.0), ("tied", 0.5)):
        made = network()
        start = made.backbone.reduce.weight.detach().clone()
        adapt(made, source(made), settings(f"sets.weight_decay={decay}"), tmp_path / name, 1.0)
        end = made.backbone.reduce.weight.detach()
        moved.append(float((end - start).norm()))
        assert float(end.norm()) > 0.5 * float(start.norm()), "and not to zero"
    assert moved[1] < 0.5 * moved[0]


def test_an_interrupted_adaptation_ends_with_the_same_weights(tmp_path: Path) -> None:
    ends = []
    for name, stops in (("whole", [None]), ("parts", [30, None])):
        for stop in stops:
            made = network()
            adapt(made, source(made), settings(), tmp_path / name, 0.9, stop_at=stop)
        ends.append(made.state_dict())
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])
    with pytest.raises(TrainingError, match="other settings"):
        adapt(network(), source(network()), settings(), tmp_path / "whole", 0.8)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    made = network()
    some = source(made)
    with pytest.raises(InvalidInputError, match=r"from 0 to 1, not 1\.5"):
        adapt(made, some, settings(), tmp_path, 1.5)
    with pytest.raises(TrainingError, match="80 features, 80 labels and 40 targets"):
        FeatureSource(some.features, some.labels, some.targets[:40])


def test_features_are_computed_once_and_kept(tmp_path: Path) -> None:
    crops = np.random.default_rng(0).integers(0, 255, (20, 8, 8, 3), dtype=np.uint8)
    augment = load_settings(SETTINGS).augment
    faces = FaceArray(crops, np.repeat(np.arange(10), 2), SPEC, augment)
    part = nn.Conv2d(3, 4, 3)
    rows = np.arange(3, 20)
    path = tmp_path / "deep" / "features.npy"
    kept = cache_features(part, lambda: faces, rows, path)
    with torch.no_grad():
        np.testing.assert_allclose(kept, part(faces.load(rows, None)).numpy(), atol=0.01)
    again = cache_features(nn.Identity(), lambda: faces, rows, path)
    np.testing.assert_array_equal(again, kept)
    assert [file.name for file in path.parent.iterdir()] == ["features.npy"]
    with pytest.raises(TrainingError, match="17 faces, 20 wanted"):
        cache_features(part, lambda: faces, np.arange(20), path)


def test_a_source_of_some_rows_draws_these_alone() -> None:
    some = source(network())
    part = some.only(np.flatnonzero(some.labels < 10))
    draw = part.draw(np.random.default_rng(0), 10, 2)
    assert set(draw.labels) == set(range(10))
    torch.testing.assert_close(part.targets[draw.picks], unit(part.targets[draw.picks]))
