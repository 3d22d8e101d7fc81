"""Adapts ONNX models of any exporter so that onnxruntime runs them in batches, and fast.

protobuf, which comes with onnxruntime, reads a file by a schema of the few fields that matter here, and keeps
all others as they are. The `onnx` package would do the same for another 35 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from setnet.errors import ModelError

ADAPTATION = 1
"""Part of the name of adapted models that are kept: raise it when `adapt_model` returns something else."""

# Messages and fields of onnx.proto under their names there: number and type, with a star where repeated.
_SCHEMA: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Model": {"ir_version": (1, "INT64"), "graph": (7, "Graph")},
    "Graph": {
        "node": (1, "Node*"),
        "initializer": (5, "Tensor*"),
        "input": (11, "Value*"),
        "output": (12, "Value*"),
        "value_info": (13, "Value*"),
    },
    "Node": {
        "input": (1, "STRING*"),
        "output": (2, "STRING*"),
        "name": (3, "STRING"),
        "op_type": (4, "STRING"),
        "attribute": (5, "Attribute*"),
    },
    "Attribute": {"name": (1, "STRING"), "i": (3, "INT64"), "t": (5, "Tensor"), "type": (20, "INT32")},
    "Tensor": {
        "dims": (1, "INT64*"),
        "data_type": (2, "INT32"),
        "float_data": (4, "FLOAT*"),
        "int64_data": (7, "INT64*"),
        "name": (8, "STRING"),
        "raw_data": (9, "BYTES"),
    },
    "Value": {"name": (1, "STRING"), "type": (2, "Type")},
    "Type": {"tensor_type": (1, "TensorType")},
    "TensorType": {"shape": (2, "Shape")},
    "Shape": {"dim": (1, "Dim*")},
    "Dim": {"dim_value": (1, "INT64"), "dim_param": (2, "STRING")},
}
_FLOAT32, _INT64, _ATTRIBUTE_INT = 1, 7, 2
_IR_WITH_PRIVATE_WEIGHTS = 4
_BATCH_AXIS = {0: "batch"}
_IMAGE_AXES = {0: "batch", 2: "height", 3: "width"}


def adapt_model(model: bytes, *, any_size: bool = False) -> bytes:
    """Return the model with private weights, a free batch size and fast activations.

    Files of older exporters list each weight also as a graph input, which onnxruntime takes for a
    value the caller must or may give, and fix the batch to 1. Weights stay as they are, results
    change by rounding only. With `any_size` the images may also have another size than the exported one.
    """
    from google.protobuf.message import DecodeError

    try:
        parsed = _model_class().FromString(model)
        if not parsed.HasField("graph"):
            raise ModelError("not an ONNX model: it holds no graph")
        parsed.ir_version = max(parsed.ir_version, _IR_WITH_PRIVATE_WEIGHTS)
        _free_reshapes(parsed.graph)
        _free_inputs(parsed.graph, _IMAGE_AXES if any_size else _BATCH_AXIS)
        _drop_block_sizes(parsed.graph)
        _replace_prelu(parsed.graph)
        return bytes(parsed.SerializeToString())
    except (DecodeError, IndexError, ValueError) as error:
        raise ModelError("not an ONNX model: its structure cannot be read") from error


@cache
def _model_class() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="graph.proto", package="setnet", syntax="proto2")
    for message, fields in _SCHEMA.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            field = described.field.add(name=name, number=number, label=3 if kind.endswith("*") else 1)
            if kind.strip("*") in _SCHEMA:
                field.type, field.type_name = field.TYPE_MESSAGE, f".setnet.{kind.strip('*')}"
            else:
                field.type = getattr(field, f"TYPE_{kind.strip('*')}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("setnet.Model"))


def _free_inputs(graph: Any, axes: Mapping[int, str]) -> None:
    """Keep only the inputs that are images, and free their axes and those of the outputs."""
    weights = {tensor.name for tensor in graph.initializer}
    # A quantised file keeps the names of its former float weights as inputs that nothing reads.
    images = {name for node in graph.node for name in node.input} - weights
    for at in reversed(range(len(graph.input))):
        if graph.input[at].name not in images:
            del graph.input[at]
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.HasField("shape"):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if axis in axes:
                    dim.Clear()
                    dim.dim_param = axes[axis]
    del graph.value_info[:]  # recorded inner shapes name the old batch size


def _free_reshapes(graph: Any) -> None:
    """Free reshapes from the batch of 1 that exporters which trace a network, as torch's, wrote into them.

    They write the shape of the traced image as a constant: (1, 196, 96). In the target of a Reshape 0 means
    "as in the input", so that with (0, 196, 96) any batch goes through. A target's leading 1 becomes 0 only
    where the file records that the input leads with 1 too, or with the batch: for one image the graph is the
    same as before.
    """
    values = [*graph.input, *graph.value_info]
    leading = {value.name: dim for value in values for dim in value.type.tensor_type.shape.dim[:1]}
    batches = {leading[value.name].dim_param for value in graph.input if value.name in leading} - {""}
    batched = {name for name, dim in leading.items() if dim.dim_value == 1 or dim.dim_param in batches}
    shapes = {name: _integers(tensor) for name, tensor in _constants(graph) if tensor.data_type == _INT64}
    for node in graph.node:
        if node.op_type != "Reshape" or any(a.name == "allowzero" and a.i for a in node.attribute):
            continue
        source, target = [*node.input, "", ""][:2]
        if source in batched and shapes.get(target, [])[:1] == [1]:
            free = np.array([0, *shapes[target][1:]], "<i8")
            node.input[1] = _add_weight(graph, f"{node.output[0]}/any_batch", free, _INT64)


def _constants(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors among the weights and the Constant nodes, by name."""
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant":
            yield from ((node.output[0], given.t) for given in node.attribute if given.HasField("t"))


def _integers(tensor: Any) -> list[int]:
    raw = np.frombuffer(tensor.raw_data, "<i8").tolist() if len(tensor.raw_data) % 8 == 0 else []
    return raw or list(tensor.int64_data)


def _drop_block_sizes(graph: Any) -> None:
    """Let onnxruntime read a quantised file whose one-scale tensors are marked as quantised in blocks.

    OpenCV's files say `block_size` for every tensor. Where one scale serves the whole tensor, as for biases,
    ONNX wants no such attribute and onnxruntime refuses the node.
    """
    single = {tensor.name for tensor in graph.initializer if list(tensor.dims) in ([], [1])}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[1] in single:
            for given in [given for given in node.attribute if given.name == "block_size"]:
                node.attribute.remove(given)


def _replace_prelu(graph: Any) -> None:
    """Replace each per-channel PRelu of an image tensor by operators that run several times faster.

    onnxruntime's PRelu walks element by element and forces the tensor out of the blocked layout its
    convolutions use; on one core it took half the time of SFace and of MTCNN. The same function as
    PRelu(x) = a x + (1 - a) relu(x), with the two per-channel factors as 1 x 1 depthwise convolutions,
    stays in that layout.
    """
    slopes = {tensor.name: slope for tensor in graph.initializer if len(slope := _channel_slopes(tensor))}
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        if node.op_type != "PRelu" or node.input[1] not in slopes:
            graph.node.append(node)
            continue
        source, out, slope = node.input[0], node.output[0], slopes[node.input[1]]
        below, above = (
            _add_weight(graph, f"{out}/prelu/{name}", factors.reshape(-1, 1, 1, 1), _FLOAT32)
            for name, factors in (("a", slope), ("1-a", 1 - slope))
        )
        relu = _add_node(graph, "Relu", [source], f"{out}/prelu/relu")
        parts = [
            _add_node(graph, "Conv", [relu, above], f"{out}/prelu/above", group=len(slope)),
            _add_node(graph, "Conv", [source, below], f"{out}/prelu/below", group=len(slope)),
        ]
        _add_node(graph, "Add", parts, out)


def _channel_slopes(tensor: Any) -> npt.NDArray[np.float32]:
    """Return the float weights of a tensor of shape ([1,] channels, 1, 1); none of another."""
    dims = list(tensor.dims)
    shape = dims[1:] if dims[:1] == [1] and len(dims) == 4 else dims
    if len(shape) != 3 or shape[1:] != [1, 1] or tensor.data_type != _FLOAT32:
        return np.zeros(0, np.float32)
    values = np.frombuffer(tensor.raw_data or np.array(tensor.float_data, "<f4").tobytes(), "<f4")
    return values if len(values) == shape[0] else values[:0]


def _add_weight(graph: Any, name: str, values: npt.NDArray[Any], kind: int) -> str:
    graph.initializer.add(
        name=name, dims=values.shape, data_type=kind, raw_data=np.ascontiguousarray(values).tobytes()
    )
    return name


def _add_node(graph: Any, operator: str, inputs: list[str], output: str, group: int | None = None) -> str:
    node = graph.node.add(op_type=operator, name=output, input=inputs, output=[output])
    if group is not None:
        node.attribute.add(name="group", i=group, type=_ATTRIBUTE_INT)
    return output
