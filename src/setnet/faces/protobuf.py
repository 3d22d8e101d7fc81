"""Reads and rewrites protobuf messages, as far as ONNX files need it.

Models are adapted at load time; with `onnx` for this, 35 MB more would be needed at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
Edit = Callable[[bytes], list[bytes]]


def rebuilt(message: bytes, edits: Mapping[int, Edit]) -> bytes:
    """Return the message with each length-delimited field in `edits` replaced by what its edit lists."""
    parts: list[bytes] = []
    for number, start, body, end in _fields(message):
        if body is None or number not in edits:
            parts.append(message[start:end])
        else:
            parts.extend(bytes_field(number, new) for new in edits[number](message[body:end]))
    return b"".join(parts)


def messages(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the bodies of a length-delimited field."""
    for number, _, body, end in _fields(message):
        if number == wanted and body is not None:
            yield message[body:end]


def text_of(message: bytes, wanted: int) -> str:
    """Return the first value of a string field, or an empty string."""
    return next((part.decode() for part in messages(message, wanted)), "")


def ints_of(message: bytes, wanted: int) -> list[int]:
    """Return the values of a (packed or plain) integer field.

    >>> ints_of(int_field(3, 300) + int_field(3, 7), 3)
    [300, 7]
    """
    values: list[int] = []
    for number, start, body, end in _fields(message):
        if number != wanted:
            continue
        at = body if body is not None else _varint(message, start)[1]
        while at < end:
            value, at = _varint(message, at)
            values.append(value)
    return values


def bytes_field(number: int, body: bytes) -> bytes:
    """Return a string, bytes or message field."""
    return _encoded(number << 3 | _BYTES) + _encoded(len(body)) + body


def int_field(number: int, value: int) -> bytes:
    """Return a non-negative integer field."""
    return _encoded(number << 3 | _VARINT) + _encoded(value)


def _fields(message: bytes) -> Iterator[tuple[int, int, int | None, int]]:
    """Yield (field number, start, start of the body if length-delimited, end) of each field."""
    at = 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        wire, body = key & 7, None
        if wire == _VARINT:
            _, at = _varint(message, at)
        elif wire == _BYTES:
            length, body = _varint(message, at)
            at = body + length
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise IndexError(f"no such wire type: {wire}")
        if at > len(message):
            raise IndexError("a field runs past the end of its message")
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


def _encoded(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
