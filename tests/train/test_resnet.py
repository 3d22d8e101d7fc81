from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional
from typer.testing import CliRunner

from setnet.cli.app import app
from setnet.errors import ModelError
from setnet.faces import load_descriptor, model_entry
from setnet.faces.registry import hash_file
from setnet.train.resnet import ResNet50, from_vggface2, load_vggface2


def to_vggface2(net: ResNet50) -> dict[str, torch.Tensor]:
    """Return the state dict under VGGFace2's names (`feat_extract` is a 1x1 convolution there)."""
    state = dict(net.state_dict())
    out = {k: v for k, v in state.items() if not k.startswith("reduce.")}
    out["feat_extract.weight"] = state["reduce.weight"][:, :, None, None]
    if "reduce.bias" in state:
        out["feat_extract.bias"] = state["reduce.bias"]
    return out


def published(squeeze: bool, dim: int = 128, bias: bool = False) -> dict[str, tuple[int, ...]]:
    """Names and shapes of VGGFace2's checkpoints, written out from their layout."""
    shapes: dict[str, tuple[int, ...]] = {}

    def conv(name: str, outputs: int, inputs: int, kernel: int) -> None:
        shapes[f"{name}.weight"] = (outputs, inputs, kernel, kernel)
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}_bn.{part}"] = (outputs,)

    conv("conv1_7x7_s2", 64, 3, 7)
    inputs = 64
    for stage, blocks, width in ((2, 3, 64), (3, 4, 128), (4, 6, 256), (5, 3, 512)):
        for block in range(1, blocks + 1):
            name = f"conv{stage}_{block}"
            conv(f"{name}_1x1_reduce", width, inputs, 1)
            conv(f"{name}_3x3", width, width, 3)
            conv(f"{name}_1x1_increase", 4 * width, width, 1)
            if block == 1:
                conv(f"{name}_1x1_proj", 4 * width, inputs, 1)
            if squeeze:
                shapes[f"{name}_1x1_down.weight"] = (4 * width // 16, 4 * width, 1, 1)
                shapes[f"{name}_1x1_down.bias"] = (4 * width // 16,)
                shapes[f"{name}_1x1_up.weight"] = (4 * width, 4 * width // 16, 1, 1)
                shapes[f"{name}_1x1_up.bias"] = (4 * width,)
            inputs = 4 * width
    shapes["feat_extract.weight"] = (dim, 2048, 1, 1)
    if bias:
        shapes["feat_extract.bias"] = (dim,)
    return shapes


@cache
def state(squeeze: bool, dim: int = 128, bias: bool = False) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    out = {k: 0.02 * torch.randn(s, generator=generator) for k, s in published(squeeze, dim, bias).items()}
    return {k: v.abs() + 0.5 if k.endswith("running_var") else v for k, v in out.items()}


@pytest.mark.parametrize(("squeeze", "dim", "bias"), [(False, 128, False), (True, 256, True)])
def test_a_published_state_dict_loads_whole(squeeze: bool, dim: int, bias: bool) -> None:
    given = state(squeeze, dim, bias)
    net = from_vggface2(given)
    assert (net.squeeze, net.dim, net.reduce.bias is not None) == (squeeze, dim, bias)
    back = {k: v for k, v in to_vggface2(net).items() if not k.endswith("num_batches_tracked")}
    assert back.keys() == given.keys()
    assert all(torch.equal(back[k], given[k]) for k in given)


def test_strides_and_pooling_are_the_original_ones() -> None:
    net = ResNet50(8).eval()
    assert net.conv3_1_1x1_reduce.stride == (2, 2)
    assert net.conv3_1_3x3.stride == (1, 1)
    assert net.conv2_1_1x1_reduce.stride == (1, 1)
    assert net.conv4_1_1x1_proj.stride == (2, 2)
    sides = []
    last = net.get_submodule("conv5_3_1x1_increase")
    last.register_forward_hook(lambda m, i, o: sides.append(o.shape[-1]))
    with torch.no_grad():
        assert net(torch.zeros(1, 3, 224, 224)).shape == (1, 8)
    assert sides == [7]


def described(state: dict[str, torch.Tensor], images: torch.Tensor, squeeze: bool) -> torch.Tensor:
    """Compute the network again from the published names alone."""

    def conv(x: torch.Tensor, name: str, stride: int = 1) -> torch.Tensor:
        weight = state[f"{name}.weight"]
        x = functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
        mean, var, scale, shift = (
            state[f"{name}_bn.{part}"][None, :, None, None]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-5).sqrt() * scale + shift

    x = conv(images, "conv1_7x7_s2", 2).clamp_min(0)
    x = functional.max_pool2d(
        functional.pad(x, (0, 1, 0, 1), value=-1e9), 3, 2
    )  # no padding before, as in Caffe
    for stage, blocks in ((2, 3), (3, 4), (4, 6), (5, 3)):
        for block in range(1, blocks + 1):
            name = f"conv{stage}_{block}_1x1"
            stride = 2 if stage > 2 and block == 1 else 1
            y = conv(x, f"{name}_reduce", stride).clamp_min(0)
            y = conv(conv(y, f"conv{stage}_{block}_3x3").clamp_min(0), f"{name}_increase")
            if squeeze:
                gate = y.mean((2, 3))
                for part, end in (("down", torch.relu), ("up", torch.sigmoid)):
                    gate = end(
                        gate @ state[f"{name}_{part}.weight"][:, :, 0, 0].T + state[f"{name}_{part}.bias"]
                    )
                y = y * gate[:, :, None, None]
            x = (y + (conv(x, f"{name}_proj", stride) if block == 1 else x)).clamp_min(0)
    return x.mean((2, 3)) @ state["feat_extract.weight"][:, :, 0, 0].T


@pytest.mark.parametrize("squeeze", [False, True])
def test_a_second_implementation_describes_alike(squeeze: bool) -> None:
    given = {name: value.double() for name, value in state(squeeze).items()}
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)).double()
    net = from_vggface2(given).double().eval()
    with torch.no_grad():
        torch.testing.assert_close(net(images), described(given, images, squeeze))


@pytest.mark.soak
@pytest.mark.xdist_group("onnx-export")
def test_a_checkpoint_becomes_a_model_that_says_what_it_was_made_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("data", "config", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    torch.save(state(False), tmp_path / "resnet50_128.pth")
    done = CliRunner().invoke(app, ["models", "add", str(tmp_path / "resnet50_128.pth"), "--json"])
    assert done.exit_code == 0, done.output
    entry = model_entry("resnet50_128", "descriptor")
    assert f"SHA-256 {hash_file(tmp_path / 'resnet50_128.pth')}" in entry.origin
    assert json.loads(done.stdout)["origin"] == entry.origin
    crop = np.random.default_rng(0).integers(0, 255, (224, 224, 3), np.uint8)
    (ours,) = load_descriptor("resnet50_128").describe([crop])
    pixels = torch.from_numpy(crop.transpose(2, 0, 1)[None]).float()
    mean = torch.tensor([131.0912, 103.8827, 91.4953])[None, :, None, None]
    (theirs,) = functional.normalize(described(state(False), pixels - mean, False)).numpy()
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_files_load_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    given = state(False)
    torch.save(given, tmp_path / "net.pth")
    save_file(given, tmp_path / "net.safetensors")
    for name in ("net.pth", "net.safetensors"):
        assert torch.equal(
            load_vggface2(tmp_path / name).reduce.weight, given["feat_extract.weight"].flatten(1)
        )
        half = (tmp_path / name).read_bytes()
        (tmp_path / f"cut-{name}").write_bytes(half[: len(half) // 2])
        with pytest.raises(ModelError, match="truncated"):
            load_vggface2(tmp_path / f"cut-{name}")
    with pytest.raises(ModelError, match="no such checkpoint"):
        load_vggface2(tmp_path / "absent.pth")


def test_wrong_state_dicts_name_the_culprit() -> None:
    given = state(False)
    cut = {k: v for k, v in given.items() if not k.startswith("conv5_3")}
    with pytest.raises(ModelError, match=r"'conv5_3_1x1_reduce.weight' is missing.*and \d+ more"):
        from_vggface2(cut)
    with pytest.raises(ModelError, match=r"'extra\.weight' is unknown"):
        from_vggface2(given | {"extra.weight": torch.zeros(1)})
    with pytest.raises(ModelError, match=r"'conv2_1_3x3.weight' has shape \(64, 64, 1, 1\)"):
        from_vggface2(given | {"conv2_1_3x3.weight": torch.zeros(64, 64, 1, 1)})
    with pytest.raises(ModelError, match="128 dimensions, 256"):
        from_vggface2(given, dim=256)


def test_a_checkpoint_without_the_last_layer_gets_a_fresh_one() -> None:
    given = {k: v for k, v in state(False).items() if not k.startswith("feat_extract")}
    given["classifier.weight"] = torch.zeros(8631, 2048)
    with pytest.raises(ModelError, match="say the descriptor dimension"):
        from_vggface2(given)
    net = from_vggface2(given, dim=64)
    assert net.dim == 64
    assert 0 < net.reduce.weight.std() < 1
    assert all(bool(torch.isfinite(value).all()) for value in net.state_dict().values())


def test_code_in_a_pickle_is_not_run(tmp_path: Path) -> None:
    import pickle

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (open, (str(tmp_path / "sprung"), "w"))  # type: ignore[return-value]

    with (tmp_path / "trap.pth").open("wb") as file:
        pickle.dump(Trap(), file)
    with pytest.raises(ModelError, match=r"torch.save\(model.state_dict"):
        load_vggface2(tmp_path / "trap.pth")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "whole.pth")
    with pytest.raises(ModelError, match=r"whole.pth: not weights alone"):
        load_vggface2(tmp_path / "whole.pth")
    assert not (tmp_path / "sprung").exists()


def test_recomputing_activations_changes_no_number() -> None:
    images = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    nets = []
    for recompute in (False, True):
        torch.manual_seed(0)
        net = ResNet50(8, squeeze=True, recompute=recompute)
        net(images).square().sum().backward()
        nets.append(net)
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    left, right = (dict(net.named_buffers()) for net in nets)
    for name, value in left.items():
        if not name.endswith("num_batches_tracked"):
            torch.testing.assert_close(value, right[name])
