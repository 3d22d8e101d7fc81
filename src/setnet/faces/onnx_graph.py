"""Reads and repairs ONNX files on the level of their bytes, so that no `onnx` package is needed."""

from __future__ import annotations

from collections.abc import Iterator

from setnet.errors import ModelError

__all__ = ["with_free_batch"]

# Field numbers of onnx.proto (ModelProto, GraphProto, ValueInfoProto, TensorProto ...).
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_VALUE_INFO = 1, 5, 11, 12, 13
_NODE_INPUT = 1
_TENSOR_NAME, _VALUE_NAME, _VALUE_TYPE = 8, 1, 2
_TYPE_TENSOR, _TENSOR_SHAPE, _SHAPE_DIM, _DIM_PARAM = 1, 2, 1, 2
_BYTES = 2  # the protobuf wire type of strings, bytes and messages


def with_free_batch(model: bytes) -> bytes:
    """Return the model with its weights private and its batch size free.

    Files of older exporters list each weight also as a graph input, which makes onnxruntime treat
    weights as changeable, and fix the batch to 1. The weights themselves stay byte for byte.

    Raises
    ------
    ModelError
        When the bytes are no ONNX model.
    """
    try:
        return _rebuilt(model, {_MODEL_GRAPH: _freed_graph})
    except (IndexError, UnicodeDecodeError) as error:
        raise ModelError("not an ONNX model: its structure cannot be read") from error


def _freed_graph(graph: bytes) -> bytes:
    weights = {_text(tensor, _TENSOR_NAME) for tensor in _messages(graph, _GRAPH_INITIALIZER)}
    # A quantised file keeps the names of its former float weights as inputs that nothing reads.
    read = {name.decode() for node in _messages(graph, _GRAPH_NODE) for name in _messages(node, _NODE_INPUT)}

    def freed_input(value: bytes) -> bytes | None:
        name = _text(value, _VALUE_NAME)
        return _free_first_dim(value) if name in read and name not in weights else None

    # Recorded shapes of intermediate values name the old batch size; onnxruntime infers them anew.
    return _rebuilt(
        graph,
        {_GRAPH_INPUT: freed_input, _GRAPH_OUTPUT: _free_first_dim, _GRAPH_VALUE_INFO: lambda _: None},
    )


def _free_first_dim(value: bytes) -> bytes:
    seen = 0

    def freed_dim(dim: bytes) -> bytes:
        nonlocal seen
        seen += 1
        return _field(_DIM_PARAM, b"batch") if seen == 1 else dim

    path = [_VALUE_TYPE, _TYPE_TENSOR, _TENSOR_SHAPE]

    def descend(message: bytes, depth: int = 0) -> bytes:
        if depth == len(path):
            return _rebuilt(message, {_SHAPE_DIM: freed_dim})
        return _rebuilt(message, {path[depth]: lambda inner: descend(inner, depth + 1)})

    return descend(value)


def _rebuilt(message: bytes, edits: dict[int, object]) -> bytes:
    """Return the message with each length-delimited field in `edits` replaced (None drops it)."""
    parts: list[bytes] = []
    for number, start, body, end in _fields(message):
        edit = edits.get(number) if body is not None else None
        if edit is None:
            parts.append(message[start:end])
            continue
        assert body is not None and callable(edit)
        changed = edit(message[body:end])
        if changed is not None:
            parts.append(_field(number, changed))
    return b"".join(parts)


def _messages(message: bytes, wanted: int) -> Iterator[bytes]:
    for number, _, body, end in _fields(message):
        if number == wanted and body is not None:
            yield message[body:end]


def _text(message: bytes, wanted: int) -> str:
    return next((part.decode() for part in _messages(message, wanted)), "")


def _fields(message: bytes) -> Iterator[tuple[int, int, int | None, int]]:
    """Yield (field number, start, start of the body if length-delimited, end) of each field."""
    at = 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        wire, body = key & 7, None
        if wire == 0:
            _, at = _varint(message, at)
        elif wire == 1:
            at += 8
        elif wire == _BYTES:
            length, body = _varint(message, at)
            at = body + length
        elif wire == 5:
            at += 4
        else:
            raise IndexError(f"wire type {wire}")
        if at > len(message):
            raise IndexError("field runs past the end")
        yield key >> 3, start, body, at


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _field(number: int, body: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(body)) + body


def _encoded(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
