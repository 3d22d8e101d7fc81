"""Models that exporters fixed to one image run in batches, and say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.errors import ModelError
from setnet.faces import load_descriptor, model_entries, model_paths
from setnet.faces.onnx_graph import adapt_model
from setnet.faces.registry import write_model_entry
from setnet.faces.sessions import open_session
from tests.support.small_models import small_descriptor, write_small_model


def runs_of(path: Path, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what a model gives for all images at once, and for one after another."""
    session = open_session(path)
    name = session.get_inputs()[0].name
    one_by_one = [session.run(None, {name: image[None]})[-1] for image in images]
    return session.run(None, {name: images})[-1], np.concatenate(one_by_one)


@pytest.mark.parametrize("constant_node", [False, True])
def test_a_reshape_to_a_batch_of_one_takes_any_batch(tmp_path: Path, constant_node: bool) -> None:
    path = write_small_model(tmp_path / "s.onnx", fixed_reshape=True, constant_node=constant_node)
    images = np.random.default_rng(1).uniform(-1, 1, (5, 3, 112, 112)).astype(np.float32)
    together, one_by_one = runs_of(path, images)
    np.testing.assert_allclose(together, one_by_one, atol=1e-6)
    lengths = np.linalg.norm(together, axis=1, keepdims=True)
    np.testing.assert_allclose(together / lengths, small_descriptor(images), atol=1e-5)


def test_where_the_file_does_not_record_the_input_nothing_is_changed(tmp_path: Path) -> None:
    path = write_small_model(tmp_path / "s.onnx", fixed_reshape=True, recorded=False)
    assert b"any_batch" not in adapt_model(path.read_bytes())
    entry = write_model_entry(path, name="s", dim=24)
    crops = np.random.default_rng(2).integers(0, 256, (3, 112, 112, 3)).astype(np.uint8)
    expected = small_descriptor(crops.transpose(0, 3, 1, 2).astype(np.float32))
    np.testing.assert_allclose(load_descriptor(str(entry)).describe(list(crops)), expected, atol=1e-5)


def test_a_weight_that_leads_with_one_is_reshaped_as_before(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx comes with setnet[train]")
    helper, tensor = onnx.helper, onnx.numpy_helper.from_array
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["slope", "target"], ["wide"]),
            helper.make_node("Mul", ["x", "wide"], ["y"]),
        ],
        "weights",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 6])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 6])],
        [
            tensor(np.arange(6, dtype=np.float32), "slope"),
            tensor(np.array([1, 6], np.int64), "target"),
        ],
        value_info=[helper.make_tensor_value_info("wide", onnx.TensorProto.FLOAT, [1, 6])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (tmp_path / "w.onnx").write_bytes(model.SerializeToString())
    together, one_by_one = runs_of(tmp_path / "w.onnx", np.ones((3, 6), np.float32))
    np.testing.assert_array_equal(together, one_by_one)
    np.testing.assert_array_equal(together, np.tile(np.arange(6, dtype=np.float32), (3, 1)))


@pytest.mark.parametrize("name", ["edgeface-s", "w600k-mbf", "sface"])
def test_real_models_say_the_same_in_batches(name: str) -> None:
    entry = model_entries()[name]
    try:
        (path,) = model_paths(entry).values()
    except ModelError as error:
        pytest.skip(str(error))
    noise = np.random.default_rng(3).integers(0, 256, (8, 3, 112, 112)).astype(np.float32)
    together, one_by_one = runs_of(path, (noise - np.float32(entry.mean[0])) * np.float32(entry.scale))
    assert together.shape == (8, entry.dim)
    np.testing.assert_allclose(together, one_by_one, atol=1e-4 * np.abs(one_by_one).max())
