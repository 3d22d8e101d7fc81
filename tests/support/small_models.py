"""Descriptor models of a few kilobytes: a crop is averaged to 7 x 7 colours and projected at random."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

SIDE, GRID = 112, 7


def write_small_model(
    path: Path,
    dim: int = 24,
    *,
    seed: int = 0,
    fixed_reshape: bool = False,
    recorded: bool = True,
    constant_node: bool = False,
    norm_too: bool = False,
) -> Path:
    """Write the ONNX file.

    Parameters
    ----------
    fixed_reshape
        A batch of 1 is written into the reshape, as some exporters do.
    recorded
        The file has the shapes inside the graph.
    constant_node
        The reshape's target is a node and no weight.
    norm_too
        The length of the vector is a first output.
    """
    onnx = pytest.importorskip("onnx", reason="onnx comes with setnet[train]")
    helper, tensor, real = onnx.helper, onnx.numpy_helper.from_array, onnx.TensorProto.FLOAT
    cells = 3 * GRID * GRID
    weights = np.random.default_rng(seed).normal(size=(cells, dim)).astype(np.float32)
    shape = tensor(np.array([1 if fixed_reshape else -1, cells], np.int64), "shape")
    side = SIDE // GRID
    nodes = [
        helper.make_node("AveragePool", ["x"], ["pooled"], kernel_shape=[side, side], strides=[side, side]),
        helper.make_node("Reshape", ["pooled", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["y"]),
    ]
    outputs = [helper.make_tensor_value_info("y", real, [1, dim])]
    if norm_too:
        nodes.append(helper.make_node("ReduceL2", ["y"], ["norm"], axes=[1]))
        outputs.insert(0, helper.make_tensor_value_info("norm", real, [1, 1]))
    if constant_node:
        nodes.insert(0, helper.make_node("Constant", [], ["shape"], value=shape))
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", real, ["n", 3, SIDE, SIDE])],
        outputs,
        [tensor(weights, "weights")] + ([] if constant_node else [shape]),
        value_info=[helper.make_tensor_value_info("pooled", real, ["n", 3, GRID, GRID])] if recorded else [],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def small_descriptor(crops: np.ndarray, dim: int = 24, seed: int = 0) -> np.ndarray:
    """Return what the model gives for prepared crops, (n, 3, 112, 112), computed by NumPy."""
    side = SIDE // GRID
    cells = crops.reshape(len(crops), 3, GRID, side, GRID, side).mean(axis=(3, 5)).reshape(len(crops), -1)
    weights = np.random.default_rng(seed).normal(size=(3 * GRID * GRID, dim)).astype(np.float32)
    vectors = cells.astype(np.float32) @ weights
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def write_wheel(path: Path, member: str, file: Path) -> Path:
    """Write a wheel that has a file, and others around it that must not be touched."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../escaped.txt", "out of the folder")
        archive.writestr("some_package/__init__.py", "raise SystemExit('nobody imports this')")
        archive.write(file, member)
        about = "some_package-1.0.dist-info"
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path
