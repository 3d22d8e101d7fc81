"""Lets onnxruntime read a quantised ONNX file whose one-scale tensors are marked as quantised in blocks.

OpenCV's files say `block_size` for every tensor. Where one scale serves the whole tensor, as for biases, ONNX
wants no such attribute and onnxruntime refuses the node.
"""

from __future__ import annotations

from setnet.faces.protobuf import ints_of, messages, rebuilt, text_of

_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_INPUT, _NODE_TYPE, _NODE_ATTRIBUTE = 1, 4, 5
_ATTRIBUTE_NAME, _TENSOR_DIMS, _TENSOR_NAME = 1, 1, 8


def with_plain_scales(graph: bytes) -> bytes:
    """Return the GraphProto without the block sizes of tensors that have one scale."""
    single = {
        text_of(tensor, _TENSOR_NAME)
        for tensor in messages(graph, _GRAPH_INITIALIZER)
        if ints_of(tensor, _TENSOR_DIMS) in ([], [1])
    }

    def plain(node: bytes) -> list[bytes]:
        inputs = [name.decode() for name in messages(node, _NODE_INPUT)]
        if text_of(node, _NODE_TYPE) != "DequantizeLinear" or inputs[1] not in single:
            return [node]
        return [rebuilt(node, {_NODE_ATTRIBUTE: _without_block_size})]

    return rebuilt(graph, {_GRAPH_NODE: plain})


def _without_block_size(attribute: bytes) -> list[bytes]:
    return [] if text_of(attribute, _ATTRIBUTE_NAME) == "block_size" else [attribute]
