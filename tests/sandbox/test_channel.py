"""Messages arrive as they were sent; bytes that are no message are refused before they cost anything."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from time import monotonic
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from setnet.errors import WorkerError
from setnet.sandbox import Message
from setnet.sandbox.messages import receive, send

LARGEST = 1 << 20
TEXTS = st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)
ARRAYS = hnp.arrays(
    st.sampled_from([np.uint8, np.int64, np.float32, np.float64]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@given(TEXTS, st.dictionaries(TEXTS, VALUES, max_size=4), st.dictionaries(TEXTS, ARRAYS, max_size=4))
def test_a_message_arrives_as_it_was_sent(name: str, fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(theirs, Message(name, fields, arrays))
        found = receive(ours, LARGEST)
    assert (found.name, found.fields, list(found.arrays)) == (name, fields, list(arrays))
    for key, array in arrays.items():
        assert found.arrays[key].dtype == array.dtype
        assert np.array_equal(found.arrays[key], array, equal_nan=True)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_cut_short(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.close()
        with pytest.raises((WorkerError, EOFError)):
            receive(ours, LARGEST)


def header(**changes: Any) -> bytes:
    return json.dumps({"name": "done", "fields": {}, "arrays": {}} | changes).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        header()[:-1] + b', "x": NaN}',
        b"1" * 10_000,
        header(name=5),
        header(fields=[]),
        header(arrays=5),
        header(arrays=[1]),
        header(arrays=[1 << 70]),
        header(arrays={"a": 5}),
        header(arrays={"a": ["float32"]}),
        header(arrays={"a": ["object", [1]]}),
        header(arrays={"a": [["float32"], [1]]}),
        header(arrays={"a": ["float32", 5]}),
        header(arrays={"a": ["float32", [-1]]}),
        header(arrays={"a": ["float32", [-2, -2]]}),
        header(arrays={"a": ["float32", [True]]}),
        header(arrays={"a": ["float32", [1.0]]}),
        header(arrays={"a": ["float32", [1] * 5]}),
        header(arrays={"a": ["float32", [1 << 40]]}),
        header(arrays={"a": ["float32", [1 << 32, 1 << 32]]}),  # its bytes are 0 in 64 bits
        header(arrays={"a": ["float32", [0, 1 << 40]]}),
        header(arrays={str(n): ["uint8", [LARGEST // 2]] for n in range(3)}),
    ],
)
def test_headers_that_cannot_be_are_refused(ends: tuple[socket.socket, socket.socket], text: bytes) -> None:
    ours, theirs = ends
    theirs.sendall(struct.pack("<I", len(text)) + text)
    with pytest.raises(WorkerError, match="invalid reply"):
        receive(ours, LARGEST, monotonic() + 10)


def test_a_header_of_any_announced_length_is_not_waited_for(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    theirs.sendall(struct.pack("<I", (1 << 32) - 1))
    with pytest.raises(WorkerError, match="a header of 4294967295 bytes"):
        receive(ours, LARGEST, monotonic() + 10)


def test_a_deadline_that_passed_is_a_timeout(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    with pytest.raises(TimeoutError):
        receive(ours, LARGEST, monotonic() + 0.01)
    with pytest.raises(TimeoutError):
        send(ours, Message("x", arrays={"large": np.zeros(1 << 24)}), monotonic() + 0.05)
    del theirs


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda m: m.flag("number"), "true or false"),
        (lambda m: m.integer("flag", 0, 1), "whole number from 0 to 1"),
        (lambda m: m.integer("number", 0, 9), "whole number"),
        (lambda m: m.number("number", 3, 9), "number from 3 to 9"),
        (lambda m: m.number("huge", 0, 9), "number from 0 to 9"),
        (lambda m: m.number("absent", 0, 9), "number from 0 to 9"),
        (lambda m: m.text("number"), "a text"),
        (lambda m: m.array("absent", np.uint8, 1), "uint8 of shape"),
        (lambda m: m.array("array", np.float64, 2), "float64 of shape"),
        (lambda m: m.array("array", np.float32, 3), r"float32 of shape \(3\)"),
        (lambda m: m.array("array", np.float32, None, 2), r"shape \(any, 2\)"),
        (lambda m: m.array("broken", np.float32, None), "finite"),
        (lambda m: m.data("array"), "uint8"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(call: Any, wanted: str) -> None:
    message = Message(
        "done",
        {"flag": True, "number": 2.5, "huge": float("inf")},
        {"array": np.zeros(2, np.float32), "broken": np.array([1, np.nan], np.float32)},
    )
    with pytest.raises(WorkerError, match=wanted):
        call(message)


def test_texts_are_made_fit_to_be_shown() -> None:
    message = Message("failed", {"text": "a\x1b[31m\ud800\nb" + "x" * 5000})
    assert message.text("text").startswith("a [31m  bxx")
    assert len(message.text("text")) == 2000
