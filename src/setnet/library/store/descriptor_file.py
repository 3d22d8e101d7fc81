"""The descriptor file: `.npz` with `descriptors` (n, D) and `labels` (n,), read without pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, StorageError
from setnet.library.store.paths import shown

__all__ = ["refuse_place", "write_descriptor_file"]


def refuse_place(path: Path) -> None:
    """Raise when a descriptor file cannot be written there."""
    if path.suffix != ".npz":
        raise InvalidInputError(f"a descriptor file ends in .npz, not {shown(path.name)!r}")
    if not path.parent.is_dir():
        raise InvalidInputError(f"no folder {shown(path.parent)} for {shown(path.name)}: make it first")


def write_descriptor_file(
    path: Path, descriptors: NDArray[np.float32], labels: Sequence[str], **more: NDArray[Any]
) -> None:
    """Write a descriptor file whole or not at all; an empty label means an unknown person."""
    refuse_place(path)
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            arrays: dict[str, Any] = {
                "descriptors": np.ascontiguousarray(descriptors, np.float32),
                "labels": np.array(list(labels), dtype=np.str_),
                **more,
            }
            np.savez(file, **arrays)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError(f"cannot write {shown(path)}: {error.strerror or error}") from error
