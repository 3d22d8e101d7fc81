"""Adapts ONNX models of any exporter so that onnxruntime can run them in batches."""

from __future__ import annotations

from collections.abc import Mapping

from setnet.errors import ModelError
from setnet.faces.onnx_batch import with_free_reshapes
from setnet.faces.onnx_prelu import with_fast_prelu
from setnet.faces.onnx_quantised import with_plain_scales
from setnet.faces.protobuf import Edit, bytes_field, int_field, ints_of, messages, rebuilt, text_of

# Field numbers of onnx.proto (ModelProto, GraphProto, NodeProto, TensorProto, ValueInfoProto ...).
_MODEL_IR_VERSION, _MODEL_GRAPH = 1, 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_VALUE_INFO = 1, 5, 11, 12, 13
_NODE_INPUT, _TENSOR_NAME, _VALUE_NAME = 1, 8, 1
_PATH_TO_SHAPE = (2, 1, 2)  # ValueInfoProto.type, TypeProto.tensor_type, Tensor.shape
_SHAPE_DIM, _DIM_PARAM = 1, 2
_IR_WITH_PRIVATE_WEIGHTS = 4
_BATCH_AXIS = {0: b"batch"}
_IMAGE_AXES = {0: b"batch", 2: b"height", 3: b"width"}


def ready_to_run(model: bytes, *, any_size: bool = False) -> bytes:
    """Return the model with private weights, a free batch size and fast activations.

    Files of older exporters list each weight also as a graph input, which onnxruntime takes for a
    value the caller must or may give, and fix the batch to 1. Weights stay as they are, results
    change by rounding only. With `any_size` the images may also have another size than the exported one.

    Raises
    ------
    ModelError
        When the bytes are no ONNX model.
    """
    try:
        if not any(True for _ in messages(model, _MODEL_GRAPH)):
            raise ModelError("not an ONNX model: it holds no graph")

        axes = _IMAGE_AXES if any_size else _BATCH_AXIS

        def adapted(graph: bytes) -> list[bytes]:
            return [with_fast_prelu(with_plain_scales(_freed(with_free_reshapes(graph), axes)))]

        freed = rebuilt(model, {_MODEL_GRAPH: adapted})
        if max(ints_of(model, _MODEL_IR_VERSION), default=0) < _IR_WITH_PRIVATE_WEIGHTS:
            freed += int_field(_MODEL_IR_VERSION, _IR_WITH_PRIVATE_WEIGHTS)  # the last one counts
        return freed
    except (IndexError, ValueError) as error:
        raise ModelError("not an ONNX model: its structure cannot be read") from error


def _freed(graph: bytes, axes: Mapping[int, bytes]) -> bytes:
    weights = {text_of(tensor, _TENSOR_NAME) for tensor in messages(graph, _GRAPH_INITIALIZER)}
    # A quantised file keeps the names of its former float weights as inputs that nothing reads.
    read = {name.decode() for node in messages(graph, _GRAPH_NODE) for name in messages(node, _NODE_INPUT)}

    def freed_input(value: bytes) -> list[bytes]:
        name = text_of(value, _VALUE_NAME)
        return [_with_free_axes(value, axes)] if name in read and name not in weights else []

    edits: dict[int, Edit] = {
        _GRAPH_INPUT: freed_input,
        _GRAPH_OUTPUT: lambda value: [_with_free_axes(value, axes)],
        _GRAPH_VALUE_INFO: lambda _: [],  # recorded inner shapes name the old batch size
    }
    return rebuilt(graph, edits)


def _with_free_axes(value: bytes, axes: Mapping[int, bytes], depth: int = 0) -> bytes:
    if depth < len(_PATH_TO_SHAPE):
        return rebuilt(
            value, {_PATH_TO_SHAPE[depth]: lambda inner: [_with_free_axes(inner, axes, depth + 1)]}
        )
    dims = list(messages(value, _SHAPE_DIM))
    free = [bytes_field(_DIM_PARAM, axes[i]) if i in axes else dim for i, dim in enumerate(dims)]
    return b"".join(bytes_field(_SHAPE_DIM, dim) for dim in free)
