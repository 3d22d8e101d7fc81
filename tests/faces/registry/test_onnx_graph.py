"""Repairing ONNX files, and models that torch exports."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import ModelError
from setnet.faces import FaceSettings, extract_faces, load_descriptor, model_entry, model_paths
from setnet.faces.onnx_graph import adapt_model
from setnet.faces.registry import write_model_entry
from tests.support.soak import examples

onnx = pytest.importorskip("onnx", reason="onnx comes with setnet[train]")


def session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def files() -> dict[str, bytes]:
    entries = [model_entry("mtcnn", "detector"), model_entry("sface", "descriptor")]
    return {role: path.read_bytes() for entry in entries for role, path in model_paths(entry).items()}


@pytest.mark.parametrize(
    ("role", "shape"), [("pnet", (1, 60, 47, 3)), ("rnet", (5, 24, 24, 3)), ("onet", (3, 48, 48, 3))]
)
def test_a_repaired_model_answers_the_same(role: str, shape: tuple[int, ...]) -> None:
    original = files()[role]
    repaired = adapt_model(original)
    onnx.checker.check_model(onnx.load_model_from_string(repaired))
    assert not any(
        node.op_type == "PRelu" for node in onnx.load_model_from_string(repaired).graph.node if role == "pnet"
    )
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    answers = [run.run(None, {run.get_inputs()[0].name: x}) for run in (session(original), session(repaired))]
    for a, b in zip(*answers, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_yunet_takes_any_size_and_its_single_scales_lose_their_block_size() -> None:
    path = model_paths(model_entry("yunet", "detector"))["model"]
    repaired = adapt_model(path.read_bytes(), any_size=True)
    (dims,) = [
        value.type.tensor_type.shape.dim for value in onnx.load_model_from_string(repaired).graph.input
    ]
    assert [dim.dim_param for dim in dims] == ["batch", "", "height", "width"]
    graph = onnx.load_model_from_string(repaired).graph
    scales = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    blocks = {
        scales[node.input[1]] == [1]: {attribute.name for attribute in node.attribute}
        for node in graph.node
        if node.op_type == "DequantizeLinear"
    }
    assert blocks == {True: {"axis"}, False: {"axis", "block_size"}}
    for rows, columns in ((64, 96), (320, 32)):
        image = np.zeros((1, 3, rows, columns), np.float32)
        (scores,) = session(repaired).run(["cls_8"], {"input": image})
        assert scores.shape == (1, rows * columns // 64, 1)


def test_sface_runs_in_batches_and_equals_opencv() -> None:
    path = model_paths(model_entry("sface", "descriptor"))["model"]
    repaired = session(adapt_model(path.read_bytes()))
    assert [value.name for value in repaired.get_inputs()] == ["data"]
    crops = np.random.default_rng(1).integers(0, 256, (3, 112, 112, 3)).astype(np.uint8)
    network = cv2.dnn.readNetFromONNX(str(path))
    described = load_descriptor("sface").describe(list(crops))
    metric = model_entry("sface", "descriptor").metric
    assert metric is not None
    for crop, ours in zip(crops, described, strict=True):
        network.setInput(crop.transpose(2, 0, 1)[None].astype(np.float32), "data")
        theirs = network.forward()[0]
        moved = theirs / np.linalg.norm(theirs) - metric.offset
        np.testing.assert_allclose(ours, moved / np.linalg.norm(moved), atol=1e-5)


def small_model(batch: int | str, fixed_reshape: bool = False, ir_version: int = 8) -> bytes:
    """Mean colour of a 3 x 32 x 32 image, times a 3 x 4 weight that is also listed as an input."""
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4) - 3, "w")
    shape = numpy_helper.from_array(np.array([1 if fixed_reshape else -1, 3], np.int64), "shape")
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["x"], ["p"]),
            helper.make_node("Reshape", ["p", "shape"], ["r"]),
            helper.make_node("MatMul", ["r", "w"], ["y"]),
        ],
        "small",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 32, 32]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 4])],
        [weight, shape],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=ir_version)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("ir_version", [3, 8])
@pytest.mark.parametrize("batch", [1, "n"])
@pytest.mark.parametrize("fixed_reshape", [False, True])
def test_models_of_any_exporter_run(
    batch: int | str, fixed_reshape: bool, ir_version: int, tmp_path: Path
) -> None:
    path = tmp_path / "small.onnx"
    path.write_bytes(small_model(batch, fixed_reshape, ir_version))
    descriptor = load_descriptor(str(write_model_entry(path, name="small", dim=4, size=32)))
    crops = np.random.default_rng(2).integers(0, 256, (20, 32, 32, 3)).astype(np.uint8)
    expected = crops.reshape(20, -1, 3).mean(axis=1) @ (np.arange(12).reshape(3, 4) - 3)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(descriptor.describe(list(crops)), expected, atol=1e-4)


def export_batched(torch: Any, network: Any, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the newer exporter takes ten times as long
        torch.onnx.export(
            network,
            (torch.zeros(2, 3, 224, 224),),
            str(path),
            dynamo=False,
            input_names=["image"],
            output_names=["descriptor"],
            dynamic_axes={"image": {0: "n"}, "descriptor": {0: "n"}},
        )
    return path


def test_a_torch_model_with_the_papers_crop_runs_by_its_entry(
    tmp_path: Path, small_portrait: npt.NDArray[np.uint8]
) -> None:
    torch = pytest.importorskip("torch", reason="torch comes with setnet[train]")
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, stride=4),
        torch.nn.PReLU(8),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
    ).eval()
    path = export_batched(torch, network, tmp_path / "net.onnx")
    mean = [131.0912, 103.8827, 91.4953]
    entry = write_model_entry(path, name="net", dim=8, size=224, mean=mean, align="box", licence="own")
    (face,) = extract_faces(small_portrait, FaceSettings(descriptor=str(entry)))
    from setnet.faces.align import box_crop

    box = (face.box.x0, face.box.y0, face.box.x1, face.box.y1)
    crop = box_crop(small_portrait, box).astype(np.float32) - np.array(mean, np.float32)
    with torch.no_grad():
        expected = network(torch.from_numpy(crop.transpose(2, 0, 1)[None].copy()))[0].numpy()
    np.testing.assert_allclose(face.descriptor, expected / np.linalg.norm(expected), atol=1e-4)


@settings(max_examples=examples(60), deadline=None)
@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_model_are_a_model_error(data: bytes) -> None:
    with contextlib.suppress(ModelError):
        adapt_model(data)
