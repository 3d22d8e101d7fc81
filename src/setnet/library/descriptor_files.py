"""Descriptors as a file: written and read by any program with NumPy, and all faces of a library as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, StorageError
from setnet.library.paths import display_path
from setnet.library.person_matcher import NamedPeople

if TYPE_CHECKING:
    from setnet.library.library import Library

_LARGEST_DIM = 1 << 20  # an empty array may claim any


def check_output_place(path: Path) -> None:
    """Raise when a descriptor file cannot be written there."""
    if path.suffix != ".npz":
        raise InvalidInputError(f"a descriptor file ends in .npz, not {display_path(path.name)!r}")
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"no folder {display_path(path.parent)} for {display_path(path.name)}: make it first"
        )


def write_descriptor_file(
    path: Path, descriptors: NDArray[np.float32], labels: Sequence[str], **more: NDArray[Any]
) -> None:
    """Write a descriptor file whole or not at all; an empty label means an unknown person."""
    check_output_place(path)
    write_arrays(
        path,
        descriptors=np.ascontiguousarray(descriptors, np.float32),
        labels=np.array(list(labels), dtype=np.str_),
        **more,
    )


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Write an `.npz` file for its owner alone, whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
        private = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)  # biometric data
        with open(private, "w+b") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # of its option allow_pickle
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError(f"cannot write {display_path(path)}: {error.strerror or error}") from error


def read_descriptors(path: str | Path) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """Return (descriptors, labels) of a descriptor file; rows labelled "" are of unknown people."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInputError(
            f"{path}: no such descriptor file; expected an .npz with 'descriptors' and 'labels'"
        )
    found, labels = read_arrays(path, ("descriptors", "labels"))
    if found.dtype.kind not in "fiu":
        raise InvalidInputError(f"{path}: descriptors must be numbers, not {found.dtype}")
    if found.ndim != 2 or labels.shape != found.shape[:1] or not 1 <= found.shape[1] <= _LARGEST_DIM:
        raise InvalidInputError(
            f"{path}: descriptors {found.shape} and labels {labels.shape} do not fit (n, D) and (n,)"
        )
    with np.errstate(over="ignore"):  # what is too large is refused below
        descriptors = np.asarray(found, dtype=np.float32)
    if not np.isfinite(descriptors).all():
        bad = int(np.flatnonzero(~np.isfinite(descriptors).all(1))[0])
        raise InvalidInputError(f"{path}: row {bad} holds NaN or infinity; remove it")
    return descriptors, labels.astype(np.str_)


def read_model(path: str | Path) -> str:
    """Return which model, in which metric, made a descriptor file; empty if it does not say."""
    path = Path(path)
    with np.load(path, allow_pickle=False) as file:
        return str(file["model"]) if "model" in file else ""


def read_arrays(path: str | Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Return the arrays called ``names`` of an ``.npz`` file; no pickle is read."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            missing = [name for name in names if name not in file]
            arrays = [] if missing else [file[name] for name in names]
    except Exception as error:  # the unpackers and NumPy raise whatever they like on damaged data
        raise InvalidInputError(f"{path}: not a readable .npz file ({str(error)[:200]})") from error
    if missing:
        expected = " and ".join(f"'{name}'" for name in names)
        raise InvalidInputError(f"{path}: no array {missing[0]!r} in it; expected arrays {expected}")
    for name, array in zip(names, arrays, strict=True):
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufU":
            raise InvalidInputError(f"{path}: array {name!r} must hold numbers or texts")
    return arrays


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How many photos, faces and labelled faces were written."""

    photos: int
    faces: int
    labelled: int


def export_descriptors(library: Library, path: Path) -> ExportReport:
    """Write `descriptors`, `labels`, `counts` (faces per photo), `paths` and `ids` of photos.

    A face is labelled with the saved person it surely is.
    """
    check_output_place(path)
    people = NamedPeople.of(library)
    vectors, labels, counts, paths, ids = [], list[str](), list[int](), list[str](), list[str]()
    for photo in library.photos.all_photos():
        found = library.photos.descriptors(photo.id)
        vectors.append(found)
        for number, descriptor in enumerate(found):
            identity = people.identify(descriptor, face=(photo.id, number))
            labels.append(identity.name if identity.sure else "")
        counts.append(len(found))
        paths.append(display_path(photo.path))
        ids.append(photo.id)
    descriptors = np.concatenate([np.zeros((0, library.dim), np.float32), *vectors])
    write_descriptor_file(
        path,
        descriptors,
        labels,
        counts=np.array(counts, np.int64),
        paths=np.array(paths, np.str_),
        ids=np.array(ids, np.str_),
    )
    return ExportReport(len(ids), len(labels), sum(label != "" for label in labels))
