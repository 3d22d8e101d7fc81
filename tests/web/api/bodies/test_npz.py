"""Arrays in a body: plain ones are read, anything else is refused with a sentence."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.web.api.bodies.npz import arrays_in


def zipped(member: bytes, kind: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr("x.npy", member)
    return file.getvalue()


def test_plain_arrays_are_read() -> None:
    file = io.BytesIO()
    np.save(file, np.arange(3))
    assert arrays_in(zipped(file.getvalue()), ("x",), ("y",), 1000)["x"].tolist() == [0, 1, 2]


def test_a_header_that_ends_in_the_middle_is_refused() -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, \n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(InvalidInputError, match="array 'x' cannot be read"):
        arrays_in(zipped(member), ("x",), (), 1000)


def test_a_damaged_compression_is_refused() -> None:
    body = bytearray(zipped(bytes(900), zipfile.ZIP_LZMA))
    body[46:54] = b"\xff" * 8
    with pytest.raises(InvalidInputError, match="no npz file"):
        arrays_in(bytes(body), ("x",), (), 1000)


def test_a_directory_that_points_before_the_body_is_refused() -> None:
    body = zipped(bytes(100))
    at = body.rindex(b"PK\x05\x06") + 16  # where the directory begins, by the archive's last record
    moved = body[:at] + (10**6).to_bytes(4, "little") + body[at + 4 :]
    with pytest.raises(InvalidInputError, match="no npz file"):
        arrays_in(moved, ("x",), (), 1000)
