"""LFW's lists: the fixed split of its people into a half to train on and a half to test on; press photos.

`lfw_split.json` holds the names. It was made once by `make_split` from LFW's list of names and numbers of
photos: a seeded shuffle within people of one, two and more photos. People of one photo are distractors of
their half.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, one_of

SPLIT_FILE = Path(__file__).parent / "lfw_split.json"
SEED = 20


@dataclass(frozen=True)
class Split:
    """Names of the people of each half."""

    train: frozenset[str]
    test: frozenset[str]


def read_split() -> Split:
    """Return the halves written in the package."""
    halves = json.loads(SPLIT_FILE.read_text(encoding="utf-8"))
    return Split(frozenset(halves["train"]), frozenset(halves["test"]))


def read_press_photos(path: Path) -> Mapping[str, list[dict[str, Any]]]:
    """Return which faces of LFW come from one press photo: its ``multi_person_photos.json``."""
    try:
        photos: Mapping[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path}: cannot read the lists of press photos ({error})") from error
    return photos


def half_of(labels: NDArray[np.str_], half: str) -> NDArray[np.bool_]:
    """Return which rows of a descriptor file belong to the ``train`` or the ``test`` half."""
    split = read_split()
    if half not in ("train", "test"):
        raise one_of("half", half, ["train", "test"])
    people = split.train if half == "train" else split.test
    rows = np.isin(labels, np.array(sorted(people)))
    if not rows.any():
        raise InvalidInputError(
            f"none of the {len(labels)} labels is in the {half} half of LFW; "
            "expected labels such as 'George_W_Bush'"
        )
    return rows


def make_split(photos: Mapping[str, int], seed: int = SEED) -> Split:
    """Divide people at random, alike for those with one, two and three or more photos."""
    rng = np.random.default_rng(seed)
    train: list[str] = []
    test: list[str] = []
    for low, high in ((3, np.inf), (2, 2), (1, 1)):
        names = np.array(sorted(name for name, count in photos.items() if low <= count <= high), dtype=object)
        rng.shuffle(names)
        train += list(names[: len(names) // 2])
        test += list(names[len(names) // 2 :])
    return Split(frozenset(train), frozenset(test))
