"""SFace as a backbone that can be trained on: its layers in torch, its weights from the ONNX file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setnet.errors import ModelError
from setnet.faces import model_entry, model_paths
from setnet.train.backbones import BACKBONES, Backbone, InputSpec

# What OpenCV's block quantisation calls the parts of a tensor.
CODES, SCALES, ZEROS, SHAPE = "_quantized", "_scales", "_zero_point", "_shape"
Arrays = dict[str, NDArray[np.generic]]


def onnx_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the float weights of an ONNX file by name.

    A tensor quantised in blocks, stored as codes, scales and zero points, is there under its own name as
    ``(code - zero point) * scale``: the numbers that onnxruntime computes with too.
    """
    import onnx

    try:
        stored = onnx.load(str(path)).graph.initializer
        arrays: Arrays = {tensor.name: np.asarray(onnx.numpy_helper.to_array(tensor)) for tensor in stored}
    except Exception as error:  # protobuf and onnx raise what they like on damaged files
        raise ModelError(f"{path}: not a readable ONNX model ({str(error)[:200]})") from error
    plain = {name: np.asarray(a, np.float32) for name, a in arrays.items() if a.dtype == np.float32}
    quantised = [name.removesuffix(CODES) for name in arrays if name.endswith(CODES)]
    return plain | {name: _dequantise(name, arrays, path) for name in quantised}


def _dequantise(name: str, arrays: Arrays, path: Path) -> NDArray[np.float32]:
    try:
        codes, scales, zeros = (arrays[name + part] for part in (CODES, SCALES, ZEROS))
        # Blocks lie along the last axis, which their number divides.
        block = codes.shape[-1] // scales.shape[-1]
        scales, zeros = (np.repeat(part, block, axis=-1) for part in (scales, zeros))
        floats = (codes.astype(np.float32) - zeros.astype(np.float32)) * scales.astype(np.float32)
        return floats.reshape(arrays[name + SHAPE].astype(np.int64)) if name + SHAPE in arrays else floats
    except (KeyError, IndexError, ValueError, ZeroDivisionError) as error:
        raise ModelError(f"{path}: weight {name!r} is not quantised in whole blocks ({error!r})") from error


Floats = NDArray[np.float32]
FIRST = 32
BLOCKS = (  # width and stride
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)
SIZE, DIM, LAST_SIDE = 112, 128, 7
EPSILON, LAST_EPSILON = 1e-3, 2e-5  # of its batch norms


def _layer(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=EPSILON),
        nn.PReLU(outputs),
    )


class SFace(Backbone):
    """SFace with random weights; `load_sface` returns it with its own.

    The batch norm that follows its last layer is folded into that layer.
    """

    spec: InputSpec = InputSpec(SIZE, (127.5, 127.5, 127.5), (128.0, 128.0, 128.0))

    def __init__(self, dim: int = DIM, size: int = SIZE) -> None:
        if (dim, size) != (DIM, SIZE):
            raise ModelError(f"sface makes {DIM} dimensions of {SIZE} pixels, not {dim} of {size}")
        width = BLOCKS[-1][0]
        super().__init__(width * LAST_SIDE**2, dim)
        blocks, inputs = [_layer(3, FIRST, 3)], FIRST
        for outputs, stride in BLOCKS:
            depthwise = _layer(inputs, inputs, 3, stride, groups=inputs)
            blocks.append(nn.Sequential(*depthwise, *_layer(inputs, outputs, 1)))
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(width, eps=LAST_EPSILON)
        self.reduce = nn.Linear(self.feature_dim, dim)

    def features(self, images: Tensor) -> Tensor:
        """Return what the last layer sees: all places of the last block's channels."""
        out: Tensor = self.norm(self.blocks(images)).flatten(1)
        return out

    def split(self, last: int) -> tuple[nn.Sequential, SFaceEnd]:
        """Return the network without its `last` blocks, and these with the last layer as a backbone.

        Both share their weights with this network: what is trained in them is trained in it.
        """
        if not 0 <= last <= len(BLOCKS):
            raise ModelError(f"sface has {len(BLOCKS)} blocks, so that {last} cannot be its last ones")
        blocks = [*self.blocks]
        at = len(blocks) - last
        return nn.Sequential(*blocks[:at]), SFaceEnd(self, nn.Sequential(*blocks[at:]))


class SFaceEnd(Backbone):
    """The last blocks of SFace and its last layer: a backbone that takes the output of the blocks before."""

    spec = SFace.spec

    def __init__(self, whole: SFace, blocks: nn.Sequential) -> None:
        super().__init__(whole.feature_dim, whole.dim)
        self.blocks, self.norm, self.reduce = blocks, whole.norm, whole.reduce

    def features(self, images: Tensor) -> Tensor:
        """Return what the last layer sees."""
        out: Tensor = self.norm(self.blocks(images)).flatten(1)
        return out


class SFaceTransfer(Backbone):
    """The last blocks and the last layer of SFace, and a fresh layer after them: what a transfer trains.

    It takes what the blocks before make of a face, which are not trained (`frozen_sface`).
    """

    spec = SFace.spec

    def __init__(self, dim: int, whole: SFace | None = None) -> None:
        super().__init__(DIM, dim)
        self.end = (whole or SFace()).split(TRAINED)[1]
        self.reduce = nn.Linear(DIM, dim)

    def features(self, images: Tensor) -> Tensor:
        """Return SFace's own descriptors."""
        out: Tensor = self.end(images)
        return out


TRAINED = 2  # blocks of `SFaceTransfer`


def frozen_sface() -> nn.Module:
    """Return the blocks of SFace that `SFaceTransfer` follows."""
    return load_sface().split(TRAINED)[0].eval()


def load_sface(dim: int = DIM, size: int = SIZE) -> SFace:
    """Return SFace with the weights of the model registry's `sface`.

    That file holds weights of eight bits, which onnxruntime expands as well: both give the same descriptors.
    """
    net = SFace(dim, size)
    (path,) = model_paths(model_entry("sface", "descriptor")).values()
    try:
        net.load_state_dict(_state(onnx_weights(path)))
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"{path}: its weights are not those of SFace ({error})") from error
    return net.eval()


def _state(weights: Mapping[str, Floats]) -> dict[str, Tensor]:
    """Return the weights of the file under the names of the network."""
    state: dict[str, NDArray[Any]] = {}
    for number in range(len(BLOCKS) + 1):
        parts = [("", 0)] if number == 0 else [("_dw", 0), ("", 3)]
        for suffix, at in parts:
            place, name = f"blocks.{number}", f"conv_{number + 1}{suffix}"
            state[f"{place}.{at}.weight"] = weights[f"{name}_conv2d_weight"]
            state |= _norm(weights, f"{name}_batchnorm", f"{place}.{at + 1}")
            state[f"{place}.{at + 2}.weight"] = weights[f"{name}_relu_gamma"].ravel()
    state |= _norm(weights, "bn1", "norm")
    scale = weights["fc1_gamma"] / np.sqrt(weights["fc1_moving_var"] + np.float32(LAST_EPSILON))
    state["reduce.weight"] = weights["pre_fc1_weight"] * scale[:, None]
    shift = weights["pre_fc1_bias"] - weights["fc1_moving_mean"]
    state["reduce.bias"] = weights["fc1_beta"] + shift * scale
    return {name: torch.tensor(array) for name, array in state.items()}


def _norm(weights: Mapping[str, Floats], name: str, place: str) -> dict[str, NDArray[Any]]:
    parts = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_var"}
    state: dict[str, NDArray[Any]] = {f"{place}.num_batches_tracked": np.zeros((), np.int64)}
    return state | {f"{place}.{ours}": weights[f"{name}_{theirs}"] for ours, theirs in parts.items()}


# With this module imported, settings may name them as `backbone.name`.
BACKBONES["sface"] = lambda wanted: load_sface(wanted.dim, wanted.size)
BACKBONES["sface-end"] = lambda wanted: SFaceTransfer(wanted.dim, load_sface())
