"""Damaged and crafted `.npz` files of descriptors."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from setnet.library import read_descriptors
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import NUMBERS, mutated_bytes
from tests.fuzz.target import Function, attempt

DTYPES = (
    "<f4", ">f4", "<f8", "<f2", "<i8", "|u1", "<U3", "|S3", "|b1", "|O", "<M8[s]", "<c8", "|V4", "<U0",
    "<U999999999", "<f16", "<i16", "", "x", "<f4,<i4",
)  # fmt: skip
WORDS = [
    b"\x93NUMPY", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"'descr': ", b"'fortran_order': True", b"'shape': ",
    b"(", b")", b",", b"{", b"}", b"None", b"L", b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06",
]  # fmt: skip


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that damages an npz file and reads it as a descriptor file."""
    described = {
        "descriptors": _npy(np.eye(2, 4, dtype=np.float32)),
        "labels": _npy(np.array(["anna", ""])),
    }
    file = folder / "file.npz"

    def read(npz: bytes) -> None:
        file.write_bytes(npz)
        _described(file)

    def run(data: bytes) -> None:
        choices = Choices(data)
        npz = crafted(choices, described)
        if choices.once_in(3):
            npz = mutated_bytes(choices, npz, WORDS)
        attempt(lambda: read(npz))

    yield run


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def crafted(choices: Choices, members: dict[str, bytes]) -> bytes:
    """Return a zip archive, most of whose members are as they should be."""
    file = io.BytesIO()
    names = sorted(members)
    changed = {choices.pick(names) for _ in range(choices.pick((1, 1, 2)))}
    kind = zipfile.ZIP_DEFLATED if choices.once_in(4) else zipfile.ZIP_STORED
    if choices.once_in(30):
        kind = choices.pick((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, member in members.items():
            data = member
            if name in changed:
                data = _headed(choices) if choices.below(2) else mutated_bytes(choices, member, WORDS)
            if not (name in changed and choices.once_in(6)):
                archive.writestr(f"{name}.npy" if choices.below(8) else name, data)
    return file.getvalue()


def _headed(choices: Choices) -> bytes:
    """Return an array whose header promises anything."""
    sizes = [choices.pick((*NUMBERS, 3)) for _ in range(choices.pick((0, 1, 1, 2, 2, 3, 40)))]
    shape = f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"
    kind, order = choices.pick(DTYPES), bool(choices.below(2))
    header = f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    if choices.once_in(4):
        header = mutated_bytes(choices, header, WORDS)
    header = header.ljust(choices.pick((117, 53, 5)), b" ") + b"\n"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(4, "little")[:2]
    return start + header + bytes(choices.pick((0, 12, 48, 100, 5000)))


def _described(file: Path) -> None:
    descriptors, labels = read_descriptors(file)
    assert descriptors.ndim == 2, "descriptors that are no rows"
    assert descriptors.dtype == np.float32
    assert np.isfinite(descriptors).all(), "descriptors that are not finite"
    assert labels.shape == (len(descriptors),), "not one label per descriptor"
