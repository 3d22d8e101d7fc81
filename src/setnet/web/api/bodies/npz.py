"""Arrays in an `.npz` body: read without pickle, and without believing what it says about its size."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError


def arrays_in(
    data: bytes, wanted: tuple[str, ...], optional: tuple[str, ...], most: int
) -> dict[str, NDArray[Any]]:
    """Return the named arrays; raise when one is missing, is no plain array, or all are over `most` bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            missing = [name for name in wanted if name not in entries]
            if missing:
                raise InvalidInputError(
                    f"the npz file has no array {missing[0]!r}: it needs {', '.join(wanted)}"
                )
            names = [*wanted, *(name for name in optional if name in entries)]
            if sum(entries[name].file_size for name in names) > most:
                raise InvalidInputError(
                    f"the npz file unpacks to more than {most / 1e6:.0f} MB: send it in parts"
                )
            return {name: _array(archive.read(entries[name]), name) for name in names}
    except InvalidInputError:
        raise
    except Exception as error:  # the unpackers raise whatever they like on damaged data
        raise InvalidInputError(f"the body is no npz file: {error}") from None


def _array(data: bytes, name: str) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # of a damaged header: from the tokenizer, the parser or NumPy
        raise InvalidInputError(f"array {name!r} cannot be read: {str(error)[:200]}") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiuU":
        raise InvalidInputError(f"array {name!r} must hold numbers or strings")
    return array
