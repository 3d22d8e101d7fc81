from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import studies
from setnet.errors import ModelError
from setnet.faces import load_descriptor, model_entry, model_paths
from setnet.train.network import export_backbone, new_backbone
from setnet.train.settings import load_settings
from setnet.train.training import pretrain
from studies.features import FeatureViews
from studies.sface import SFace, frozen_sface, load_sface, onnx_weights
from tests.support.learn_people import pattern

FACES = str(Path(studies.__file__).with_name("faces.toml"))
CROPS = [pattern(person, 0, 112) for person in range(6)]


@pytest.fixture(scope="module")
def sface() -> SFace:
    return load_sface()


def images() -> torch.Tensor:
    return (torch.from_numpy(np.stack(CROPS)).permute(0, 3, 1, 2).float() - 127.5) / 128


def unit_rows(rows: torch.Tensor) -> NDArray[np.float32]:
    return np.asarray(torch.nn.functional.normalize(rows).detach().numpy())


def in_metric(descriptors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return descriptors of the network itself in the metric of the registry's entry."""
    metric = model_entry("sface", "descriptor").metric
    assert metric is not None
    return metric.apply(descriptors)


def test_the_torch_network_describes_like_the_run_time(sface: SFace) -> None:
    theirs = load_descriptor("sface").describe(CROPS)
    cosines = (in_metric(unit_rows(sface(images()))) * theirs).sum(axis=1)
    # Weight-only quantisation: both compute in floats with the same expanded weights, so rounding is all.
    assert cosines.min() > 0.999999


@pytest.mark.parametrize("last", [0, 1, 3])
def test_its_two_parts_are_the_whole_and_share_its_weights(sface: SFace, last: int) -> None:
    before, end = sface.split(last)
    with torch.no_grad():
        np.testing.assert_allclose(end(before(images())), sface(images()), atol=1e-4)
    assert end.reduce is sface.reduce
    assert {id(p) for p in end.parameters()} | {id(p) for p in before.parameters()} == {
        id(p) for p in sface.parameters()
    }
    with pytest.raises(ModelError, match="13 blocks"):
        sface.split(14)


def test_settings_name_it_and_cannot_change_its_shape() -> None:
    with pytest.raises(ModelError, match="128 dimensions of 112 pixels, not 64 of 112"):
        new_backbone(load_settings("default", ["backbone.name=sface", "backbone.dim=64"]))


@pytest.mark.xdist_group("onnx-export")
def test_it_is_exported_like_any_backbone(sface: SFace, tmp_path: Path) -> None:
    entry = export_backbone(sface, tmp_path / "copy.onnx", "copy")
    ours, theirs = (load_descriptor(name).describe(CROPS) for name in (str(entry), "sface"))
    np.testing.assert_allclose(in_metric(ours), theirs, atol=1e-4)


def test_codes_of_a_block_are_expanded_by_its_scale_and_zero_point(tmp_path: Path) -> None:
    parts: dict[str, NDArray[np.generic]] = {
        "a_quantized": np.array([[1, 2, 3, 4]], np.int8),
        "a_scales": np.array([[0.5, 2.0]], np.float32),
        "a_zero_point": np.array([[1, 0]], np.int8),
        "a_shape": np.array([2, 2], np.int64),
        "b": np.array([7.0], np.float32),
    }
    stored(tmp_path / "small.onnx", parts)
    found = onnx_weights(tmp_path / "small.onnx")
    np.testing.assert_array_equal(found["a"], [[0.0, 0.5], [6.0, 8.0]])
    np.testing.assert_array_equal(found["b"], [7.0])


def test_files_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no.onnx").write_bytes(b"\xff\xff")
    with pytest.raises(ModelError, match="not a readable ONNX model"):
        onnx_weights(tmp_path / "no.onnx")
    stored(tmp_path / "half.onnx", {"a_quantized": np.zeros((1, 4), np.int8)})
    with pytest.raises(ModelError, match=r"weight 'a' .*a_scales"):
        onnx_weights(tmp_path / "half.onnx")
    stored(tmp_path / "other.onnx", {"conv_1_conv2d_weight": np.zeros((1, 4), np.float32)})
    other = {"model": tmp_path / "other.onnx"}
    monkeypatch.setattr("studies.sface.model_paths", lambda entry: other)
    with pytest.raises(ModelError, match="not those of SFace"):
        load_sface()


def test_the_registered_file_says_which_weights_are_quantised() -> None:
    (path,) = model_paths(model_entry("sface", "descriptor")).values()
    weights = onnx_weights(path)
    assert weights["conv_14_conv2d_weight"].shape == (1024, 1024, 1, 1)
    assert weights["pre_fc1_weight"].shape == (128, 50176)


def stored(path: Path, arrays: dict[str, NDArray[np.generic]]) -> None:
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    onnx.save(helper.make_model(helper.make_graph([], "test", [], [], tensors)), str(path))


def test_a_transfer_trains_its_last_layer_and_leaves_the_rest() -> None:
    settings = load_settings(FACES, ["pretrain.steps=2", "pretrain.batch=4", "backbone.dim=8"])
    torch.manual_seed(0)
    backbone = new_backbone(settings)
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    features = torch.randn(6, 512, 14, 14, generator=torch.Generator().manual_seed(0)).half().numpy()
    views = [features, features + np.float16(1)]
    parent = os.getpid()

    def make(view: int) -> NDArray[np.float16]:
        assert os.getpid() == parent, "each worker would make the features, all in the same file"
        return views[view]

    source = FeatureViews(np.repeat(np.arange(3), 2), "features", make, 2)
    with TemporaryDirectory() as folder:
        pretrain(backbone, source, settings, Path(folder), workers=2)
    changed = {name for name, value in backbone.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"reduce.weight", "reduce.bias"}
    loaded = source.load(np.array([3]), None).numpy()
    np.testing.assert_array_equal(loaded, features[[3]])
    drawn = {source.load(np.array([3]), [np.random.default_rng(seed)]).mean().item() for seed in range(9)}
    assert len(drawn) == 2


def test_frozen_blocks_and_what_follows_them_are_the_whole(sface: SFace) -> None:
    backbone = new_backbone(load_settings(FACES))
    with torch.no_grad():
        np.testing.assert_allclose(backbone.features(frozen_sface()(images())), sface(images()), atol=1e-4)
