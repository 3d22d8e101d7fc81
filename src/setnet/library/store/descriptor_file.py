"""Descriptor files: `.npz` with `descriptors` (n, D) and `labels` (n,), written and read without pickle."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, StorageError
from setnet.library.store.paths import shown

__all__ = ["read_arrays", "read_descriptors", "refuse_place", "write_descriptor_file"]


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
        part.unlink(missing_ok=True)
        private = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)  # biometric data
        with open(private, "w+b") as file:
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


def read_descriptors(path: str | Path) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """Return (descriptors, labels) of a descriptor file; rows labelled "" are of unknown people."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInputError(
            f"{path}: no such descriptor file; expected an .npz with 'descriptors' and 'labels'"
        )
    found, labels = read_arrays(path, ("descriptors", "labels"))
    try:
        descriptors = np.asarray(found, dtype=np.float32)
    except ValueError as error:
        raise InvalidInputError(f"{path}: not a readable descriptor file ({error})") from error
    if descriptors.ndim != 2 or labels.shape != (len(descriptors),):
        raise InvalidInputError(
            f"{path}: descriptors {descriptors.shape} and labels {labels.shape} do not fit (n, D) and (n,)"
        )
    if not np.isfinite(descriptors).all():
        bad = int(np.flatnonzero(~np.isfinite(descriptors).all(1))[0])
        raise InvalidInputError(f"{path}: row {bad} holds NaN or infinity; remove it")
    return descriptors, labels.astype(np.str_)


def read_arrays(path: str | Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Return the arrays called ``names`` of an ``.npz`` file; no pickle is read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in names]
    except KeyError as error:
        wanted = " and ".join(f"'{name}'" for name in names)
        raise InvalidInputError(f"{path}: {error.args[0]}; expected arrays {wanted}") from error
    except (EOFError, OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInputError(f"{path}: not a readable .npz file ({error})") from error
