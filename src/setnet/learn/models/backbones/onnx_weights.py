"""The weights of an ONNX file as arrays, quantised ones expanded to floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import ModelError

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
    return plain | {name: _expanded(name, arrays, path) for name in quantised}


def _expanded(name: str, arrays: Arrays, path: Path) -> NDArray[np.float32]:
    try:
        codes, scales, zeros = (arrays[name + part] for part in (CODES, SCALES, ZEROS))
        # Blocks lie along the last axis, which their number divides.
        block = codes.shape[-1] // scales.shape[-1]
        scales, zeros = (np.repeat(part, block, axis=-1) for part in (scales, zeros))
        floats = (codes.astype(np.float32) - zeros.astype(np.float32)) * scales.astype(np.float32)
        return floats.reshape(arrays[name + SHAPE].astype(np.int64)) if name + SHAPE in arrays else floats
    except (KeyError, IndexError, ValueError, ZeroDivisionError) as error:
        raise ModelError(f"{path}: weight {name!r} is not quantised in whole blocks ({error!r})") from error
