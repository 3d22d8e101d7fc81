"""A query as a command line gives it: vectors in a file, conditions as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library import read_arrays


def query_from(file: Path | None) -> NDArray[np.float32]:
    """Return the rows of the array ``query`` of an ``.npz`` file."""
    if file is None:
        raise InvalidInputError("nothing is asked for: name people, or give vectors with --query FILE.npz")
    if not file.is_file():
        raise InvalidInputError(f"{file}: no such file; expected an .npz with an array 'query'")
    (rows,) = read_arrays(file, ("query",))
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise InvalidInputError(
            f"{file}: 'query' must be one row of numbers per query element, not {rows.shape}"
        )
    return rows.astype(np.float32)


def conditions_from(text: str) -> dict[str, Any] | None:
    """Return conditions on attributes from JSON; None from an empty text.

    >>> conditions_from('{"year": {">=": 2019}}')
    {'year': {'>=': 2019}}
    """
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        found = error
    if not isinstance(found, dict):
        raise InvalidInputError(f"--where takes a JSON object such as '{{\"year\": 2019}}', not {text!r:.80}")
    return found
