"""Labels of LFW that are wrong, seen by looking at the most similar faces of different names.

`lfw_errata.json` has names that are one person's, and photos that show somebody else or are stored under two
names. Twins and siblings are different people and are not listed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

ERRATA_FILE = Path(__file__).parent / "lfw_errata.json"


def corrected(
    labels: NDArray[np.str_], paths: Sequence[str] | None
) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
    """Return labels with one name for one person, and which rows show whom they are labelled with.

    Without `paths` no row can be told to show somebody else.
    """
    errata = json.loads(ERRATA_FILE.read_text(encoding="utf-8"))
    wrong = set(errata["somebody_else"])
    same = {other: name for name, other in errata["one_person"]}
    right = np.array([same.get(label, label) for label in labels.tolist()], dtype=labels.dtype)
    keep = np.ones(len(labels), bool)
    if paths is not None:
        keep = np.array([photo_key(path) not in wrong for path in paths], bool)
    return right, keep


def photo_key(path: str) -> str:
    """Return the last folder and the name of a photo, which copies of it share.

    >>> photo_key("/data/lfw-coarse/Anna/Anna_0001.jpg")
    'Anna/Anna_0001.jpg'
    """
    return "/".join(PurePath(path).parts[-2:])
