"""Reading descriptor files: `.npz` without pickle, with `descriptors` (n, D) and `labels` (n,)."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError

__all__ = ["read_descriptors"]


def read_descriptors(path: str | Path) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """Return (descriptors, labels) of a descriptor file; rows labelled "" belong to nobody known."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInputError(
            f"{path}: no such descriptor file; expected an .npz with 'descriptors' and 'labels'"
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            descriptors, labels = np.asarray(file["descriptors"], dtype=np.float32), file["labels"]
    except KeyError as error:
        raise InvalidInputError(
            f"{path}: {error.args[0]}; expected arrays 'descriptors' and 'labels'"
        ) from error
    except (EOFError, OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInputError(f"{path}: not a readable descriptor file ({error})") from error
    if descriptors.ndim != 2 or labels.shape != (len(descriptors),):
        raise InvalidInputError(
            f"{path}: descriptors {descriptors.shape} and labels {labels.shape} do not fit (n, D) and (n,)"
        )
    if not np.isfinite(descriptors).all():
        bad = int(np.flatnonzero(~np.isfinite(descriptors).all(1))[0])
        raise InvalidInputError(f"{path}: row {bad} holds NaN or infinity; remove it")
    return descriptors, labels.astype(np.str_)
