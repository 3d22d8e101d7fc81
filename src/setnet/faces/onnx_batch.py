"""Frees reshapes in an ONNX graph from the batch of 1 that the exporter wrote into them.

Exporters that trace a network, such as torch's with EdgeFace, write the shape of the traced image as a
constant: (1, 196, 96). In the target of a Reshape 0 means "as in the input", so that with (0, 196, 96) any
batch goes through.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from setnet.faces.protobuf import bytes_field, int_field, ints_of, messages, rebuilt, text_of

_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_VALUE_INFO = 1, 5, 11, 13
_NODE_INPUT, _NODE_OUTPUT, _NODE_TYPE, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_INT, _ATTRIBUTE_TENSOR = 1, 3, 5
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_INTS, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 7, 8, 9
_VALUE_NAME, _PATH_TO_SHAPE = 1, (2, 1, 2)  # ValueInfoProto.type, TypeProto.tensor_type, Tensor.shape
_SHAPE_DIM, _DIM_VALUE, _DIM_PARAM = 1, 1, 2
_INT64 = 7


def with_free_reshapes(graph: bytes) -> bytes:
    """Return the GraphProto in which reshapes keep the batch that comes in.

    A target's leading 1 becomes 0 only where the file records that the input leads with 1 too, or with the
    batch: for one image the graph is the same as before.
    """
    leads_with_batch = set(_batched_values(graph))
    shapes = dict(_constant_shapes(graph))
    added: list[bytes] = []

    def freed(node: bytes) -> list[bytes]:
        if text_of(node, _NODE_TYPE) != "Reshape" or _means_zero(node):
            return [node]
        source, target = [*(name.decode() for name in messages(node, _NODE_INPUT)), "", ""][:2]
        shape = shapes.get(target, [])
        if source not in leads_with_batch or shape[:1] != [1]:
            return [node]
        name = f"{text_of(node, _NODE_OUTPUT)}/any_batch"
        added.append(_shape_tensor(name, [0, *shape[1:]]))
        inputs = iter([source, name])
        return [rebuilt(node, {_NODE_INPUT: lambda _: [next(inputs).encode()]})]

    changed = rebuilt(graph, {_GRAPH_NODE: freed})
    return changed + b"".join(bytes_field(_GRAPH_INITIALIZER, tensor) for tensor in added)


def _means_zero(node: bytes) -> bool:
    """Tell whether a Reshape takes 0 for an empty dimension, as ONNX allows since version 14."""
    return any(
        text_of(attribute, _ATTRIBUTE_NAME) == "allowzero" and ints_of(attribute, _ATTRIBUTE_INT) != [0]
        for attribute in messages(node, _NODE_ATTRIBUTE)
    )


def _batched_values(graph: bytes) -> Iterator[str]:
    """Yield the values whose recorded shape leads with 1, or with the name of the batch."""
    inputs = list(messages(graph, _GRAPH_INPUT))
    batch_names = {text_of(dim, _DIM_PARAM) for value in inputs for dim in _leading(value)} - {""}
    for value in [*inputs, *messages(graph, _GRAPH_VALUE_INFO)]:
        for dim in _leading(value):
            if ints_of(dim, _DIM_VALUE) == [1] or text_of(dim, _DIM_PARAM) in batch_names:
                yield text_of(value, _VALUE_NAME)


def _leading(value: bytes) -> list[bytes]:
    """Return the first dimension in a recorded shape, in a list that is empty where there is none."""
    parts = [value]
    for field in _PATH_TO_SHAPE:
        parts = [inner for part in parts for inner in messages(part, field)]
    return [dim for shape in parts for dim in list(messages(shape, _SHAPE_DIM))[:1]]


def _constant_shapes(graph: bytes) -> Iterator[tuple[str, list[int]]]:
    """Yield the integer vectors among the weights and the Constant nodes, by name."""
    for tensor in messages(graph, _GRAPH_INITIALIZER):
        if ints_of(tensor, _TENSOR_TYPE) == [_INT64]:
            yield text_of(tensor, _TENSOR_NAME), _values(tensor)
    for node in messages(graph, _GRAPH_NODE):
        if text_of(node, _NODE_TYPE) == "Constant":
            for attribute in messages(node, _NODE_ATTRIBUTE):
                for tensor in messages(attribute, _ATTRIBUTE_TENSOR):
                    if ints_of(tensor, _TENSOR_TYPE) == [_INT64]:
                        yield text_of(node, _NODE_OUTPUT), _values(tensor)


def _values(tensor: bytes) -> list[int]:
    raw = b"".join(messages(tensor, _TENSOR_RAW))
    if raw and len(raw) % 8 == 0:
        return [int(value) for value in np.frombuffer(raw, "<i8")]
    # Protobuf writes negative numbers as large ones: -1 stands for "what is left".
    return [value if value < 1 << 63 else value - (1 << 64) for value in ints_of(tensor, _TENSOR_INTS)]


def _shape_tensor(name: str, shape: list[int]) -> bytes:
    return (
        int_field(_TENSOR_DIMS, len(shape))
        + int_field(_TENSOR_TYPE, _INT64)
        + bytes_field(_TENSOR_NAME, name.encode())
        + bytes_field(_TENSOR_RAW, np.array(shape, "<i8").tobytes())
    )
