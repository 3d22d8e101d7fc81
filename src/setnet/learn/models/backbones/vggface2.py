"""Reading VGGFace2's published PyTorch checkpoints into the paper's backbones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from setnet.errors import ModelError
from setnet.learn.models.backbones.resnet import ResNet50

LAST = "feat_extract"


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
    except Exception as error:  # many kinds: zip, pickle, header, end of file
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
    net = ResNet50(width, squeeze=squeeze, bias=last is None or bias is not None)
    if last is not None:
        state["reduce.weight"] = last.flatten(1)
        if bias is not None:
            state["reduce.bias"] = bias
    _fill(net, state, source, fresh=last is None)
    return net


def _fill(net: nn.Module, state: dict[str, Tensor], source: str, fresh: bool) -> None:
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
            f"{source}: not a VGGFace2 {'SENet' if getattr(net, 'squeeze', False) else 'ResNet'}-50: "
            + "; ".join(problems[:3])
            + more
        )
    net.load_state_dict(state, strict=False)
