"""The paper's backbones, ResNet-50 and SENet-50, and the weights that VGGFace2's authors published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from setnet.errors import ModelError
from setnet.train.backbones import Backbone, InputSpec

BLOCKS = (3, 4, 6, 3)
SE_RATIO = 16


class ResNet50(Backbone):
    """The paper's feature extractor, cut after global average pooling, with a 2048 x D_e layer.

    The stride of a stage sits on its first 1x1 convolutions (reduce and projection), as in the original Caffe
    network. `squeeze` adds squeeze-and-excitation (SENet-50). `recompute` keeps only the blocks' inputs in
    training and computes the rest again in the backward pass: a fifth of the memory, a third more time.
    """

    spec = InputSpec(224, (131.0912, 103.8827, 91.4953), (1.0, 1.0, 1.0))

    def __init__(self, dim: int, squeeze: bool = False, bias: bool = True, recompute: bool = False) -> None:
        super().__init__(2048, dim)
        self.squeeze, self.recompute = squeeze, recompute
        self._conv("conv1_7x7_s2", 3, 64, 7, stride=2)
        width_in = 64
        for stage, blocks in enumerate(BLOCKS, start=2):
            width = 64 * 2 ** (stage - 2)
            for block in range(1, blocks + 1):
                name = f"conv{stage}_{block}"
                stride = 2 if block == 1 and stage > 2 else 1
                self._conv(f"{name}_1x1_reduce", width_in, width, 1, stride)
                self._conv(f"{name}_3x3", width, width, 3)
                self._conv(f"{name}_1x1_increase", width, 4 * width, 1)
                if block == 1:
                    self._conv(f"{name}_1x1_proj", width_in, 4 * width, 1, stride)
                if squeeze:
                    self.add_module(f"{name}_1x1_down", nn.Conv2d(4 * width, 4 * width // SE_RATIO, 1))
                    self.add_module(f"{name}_1x1_up", nn.Conv2d(4 * width // SE_RATIO, 4 * width, 1))
                width_in = 4 * width
        self.reduce = nn.Linear(2048, dim, bias=bias)

    def _conv(self, name: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
        self.add_module(name, conv)
        self.add_module(f"{name}_bn", nn.BatchNorm2d(outputs))

    def _apply_conv(self, name: str, x: Tensor) -> Tensor:
        out: Tensor = getattr(self, f"{name}_bn")(getattr(self, name)(x))
        return out

    def _block(self, name: str, x: Tensor, project: bool) -> Tensor:
        out = functional.relu(self._apply_conv(f"{name}_1x1_reduce", x), inplace=True)
        out = functional.relu(self._apply_conv(f"{name}_3x3", out), inplace=True)
        out = self._apply_conv(f"{name}_1x1_increase", out)
        if self.squeeze:
            gate = functional.relu(getattr(self, f"{name}_1x1_down")(functional.adaptive_avg_pool2d(out, 1)))
            out = out * getattr(self, f"{name}_1x1_up")(gate).sigmoid()
        shortcut = self._apply_conv(f"{name}_1x1_proj", x) if project else x
        return functional.relu(out + shortcut, inplace=True)

    def features(self, images: Tensor) -> Tensor:
        """Return the 2048-D global average pooling."""
        x = functional.relu(self._apply_conv("conv1_7x7_s2", images), inplace=True)
        x = functional.max_pool2d(x, 3, 2, ceil_mode=True)
        for stage, blocks in enumerate(BLOCKS, start=2):
            for block in range(1, blocks + 1):
                name, project = f"conv{stage}_{block}", block == 1
                if self.recompute and self.training:
                    x = checkpoint(
                        self._block,
                        name,
                        x,
                        project,
                        use_reentrant=False,
                        context_fn=lambda: (nullcontext(), _once(self)),
                    )
                else:
                    x = self._block(name, x, project)
        return x.mean((2, 3))


@contextmanager
def _once(net: nn.Module) -> Iterator[None]:
    """Keep batch norm's running statistics still: a block computed again must not count twice."""
    norms = [part for part in net.modules() if isinstance(part, nn.BatchNorm2d)]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, kept, strict=True):
            norm.momentum = momentum


LAST = "feat_extract"
_WHOLE_MODEL = """\
not weights alone but a pickle of other objects, which can run any code when it is read: it is refused.
Where the model's own code is installed and you trust the file, write its weights alone:
    import torch
    model = torch.load("model.pth", map_location="cpu", weights_only=False)
    torch.save(model.state_dict(), "weights.pth")"""


def load_vggface2(path: str | Path, dim: int | None = None) -> ResNet50:
    """Return the ResNet-50 or SENet-50 stored at `path`: ``.safetensors``, or a published ``.pth``.

    Published files are pickles: torch's restricted loader reads them, which builds tensors only.
    `dim` adds a fresh 2048 x dim layer to a file that has none.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"{path}: no such checkpoint; give the path of a VGGFace2 file")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise ModelError(f"{path}: {_WHOLE_MODEL}") from error
    except Exception as error:  # many kinds: zip, header, end of file
        raise ModelError(
            f"{path}: not a readable checkpoint ({type(error).__name__}); truncated? download it again"
        ) from error
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise ModelError(f"{path}: expected a plain state dict of tensors, got {type(state).__name__}")
    return from_vggface2(state, dim, source=str(path))


def from_vggface2(state: dict[str, Tensor], dim: int | None = None, source: str = "state dict") -> ResNet50:
    """Return the backbone of a state dict with VGGFace2's names; the kind and D_e are read from it."""
    state = {k: v for k, v in state.items() if not k.startswith("classifier.")}
    squeeze = any(k.endswith("_1x1_down.weight") for k in state)
    last = state.pop(f"{LAST}.weight", None)
    if last is None and dim is None:
        raise ModelError(
            f"{source}: no '{LAST}.weight' layer; say the descriptor dimension to add a fresh one"
        )
    if last is not None and (last.ndim not in (2, 4) or last.shape[1] != 2048):
        raise ModelError(
            f"{source}: '{LAST}.weight' has shape {tuple(last.shape)}, expected (D_e, 2048, 1, 1)"
        )
    bias = state.pop(f"{LAST}.bias", None)
    width = dim if last is None else last.shape[0]
    assert width is not None
    if last is not None and dim is not None and dim != width:
        raise ModelError(f"{source}: descriptors of {width} dimensions, {dim} expected")
    with torch.device("meta"):  # to draw weights that the file replaces would take as long as to read it
        net = ResNet50(width, squeeze=squeeze, bias=last is None or bias is not None)
    if last is not None:
        state["reduce.weight"] = last.flatten(1)
        if bias is not None:
            state["reduce.bias"] = bias
    _fill(net, state, source, fresh=last is None)
    return net


def _fill(net: ResNet50, state: dict[str, Tensor], source: str, fresh: bool) -> None:
    wanted = net.state_dict()
    # Files older than torch 0.4.1 do not count batches; the count is not used with a fixed momentum.
    optional = {k for k in wanted if k.endswith("num_batches_tracked")}
    if fresh:
        optional |= {"reduce.weight", "reduce.bias"}
    problems = [f"'{k}' is missing" for k in wanted if k not in state and k not in optional]
    problems += [f"'{k}' is unknown" for k in state if k not in wanted]
    problems += [
        f"'{k}' has shape {tuple(v.shape)}, expected {tuple(wanted[k].shape)}"
        for k, v in state.items()
        if k in wanted and v.shape != wanted[k].shape
    ]
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise ModelError(
            f"{source}: not a VGGFace2 {'SENet' if net.squeeze else 'ResNet'}-50: "
            + "; ".join(problems[:3])
            + more
        )
    net.to_empty(device="cpu")
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.reset_running_stats()
    if fresh:
        net.reduce.reset_parameters()
    net.load_state_dict(state, strict=False)
