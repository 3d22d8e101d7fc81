"""Descriptors of labelled people: files, LFW with its known mistakes, halves that share nobody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, choice_error
from setnet.heads import unit
from setnet.library import read_descriptors
from setnet.train import VirtualPeople

Floats = NDArray[np.float32]

# Made once at random, alike for people with one, two and three or more photos.
SPLIT_FILE = Path(__file__).parent / "data" / "lfw_split.json"


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
        raise choice_error("half", half, ["train", "test"])
    people = split.train if half == "train" else split.test
    rows = np.isin(labels, np.array(sorted(people)))
    if not rows.any():
        raise InvalidInputError(
            f"none of the {len(labels)} labels is in the {half} half of LFW; "
            "expected labels such as 'George_W_Bush'"
        )
    return rows


MIN_PEOPLE = 6
# Parameters of virtual people, fitted on LFW's test half for simulated worlds and on its training half for
# whatever is fitted or trained: `python -m studies.fit LFW.npz --half test`
# made the first (docs/research/evaluating.md).
LFW_LIKE = Path(__file__).parent / "data" / "sface_people_test.npz"
LFW_LIKE_TRAIN = Path(__file__).parent / "data" / "sface_people_train.npz"


@dataclass(frozen=True, eq=False)
class LabelledPeople:
    """Descriptors at unit length and whose each is; an empty label means an unknown person."""

    descriptors: NDArray[np.float32]
    labels: NDArray[np.str_]

    @property
    def dim(self) -> int:
        """Dimension of the descriptors."""
        return int(self.descriptors.shape[1])

    def groups(self, min_faces: int = 1) -> list[NDArray[np.int64]]:
        """Return the rows of each known person with so many faces or more, people in order of names."""
        names, owner = np.unique(self.labels, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        ends = np.cumsum(np.bincount(owner, minlength=len(names)))
        parts = zip(names, np.split(order, ends)[:-1], strict=True)
        return [rows for name, rows in parts if name != "" and len(rows) >= min_faces]


@dataclass(frozen=True, eq=False)
class TrainTestSplit:
    """People to fit on, people to test on, and in words what they are."""

    train: LabelledPeople
    test: LabelledPeople
    name: str
    is_virtual: bool = False


def read_people(path: str | Path) -> LabelledPeople:
    """Read a descriptor file and refuse one that no experiment can use, with the reason."""
    descriptors, labels = read_descriptors(path)
    if not len(labels):
        raise InvalidInputError(f"{path} holds no descriptors")
    zero = np.flatnonzero(~descriptors.any(axis=1))
    if len(zero):
        raise InvalidInputError(f"{path}: row {zero[0]} is the zero vector; remove it")
    people = LabelledPeople(unit(descriptors), labels)
    if not (labels != "").any():
        raise InvalidInputError(
            f"{path}: no row has a label; experiments need to know whose face is whose "
            "(`setnet describe` labels by folder name)"
        )
    several = len(people.groups(2))
    if several < MIN_PEOPLE:
        raise InvalidInputError(
            f"{path}: {several} people have two faces or more, {len(people.groups())} are known; experiments "
            f"need {MIN_PEOPLE} or more with several faces, one to query with and one to find"
        )
    return people


def train_test_split(people: LabelledPeople, name: str, seed: int = 0) -> TrainTestSplit:
    """Return two halves that share nobody: LFW's fixed split if these are its people, else a random one."""
    fixed = read_split()
    names = np.unique(people.labels[people.labels != ""])
    known = np.isin(names, list(fixed.train | fixed.test))
    if known.mean() > 0.9:
        test = np.isin(people.labels, list(fixed.test))
        train = np.isin(people.labels, list(fixed.train))
        words = f"{name}: LFW's people, fitted on the training half, tested on the test half"
    else:
        rng = np.random.default_rng(seed)
        several = [str(people.labels[rows[0]]) for rows in people.groups(2)]
        parts = [rng.permutation(part) for part in (several, np.setdiff1d(names, several))]
        chosen = np.concatenate([part[: len(part) // 2] for part in parts])
        either = rng.random(len(people.labels)) < 0.5
        train = np.where(people.labels == "", either, np.isin(people.labels, chosen))
        test = ~train
        words = f"{name}: random split of the people, fitted on one half, tested on the other"
    split = TrainTestSplit(_part(people, train), _part(people, test), words)
    for half, part in (("fit", split.train), ("test", split.test)):
        if len(part.groups(2)) < MIN_PEOPLE // 2:
            raise InvalidInputError(
                f"{name}: {len(part.groups(2))} people to {half} on have two faces or more, "
                f"{MIN_PEOPLE // 2} are needed; LFW's people have a fixed split: give both halves"
            )
    return split


def virtual_split(difficulty: float, seed: int, people: int = 1500) -> TrainTestSplit:
    """Return virtual people: to fit on like those of LFW's training half, to test on like its test half."""
    parts = []
    for half, model in enumerate((LFW_LIKE_TRAIN, LFW_LIKE)):
        drawn = VirtualPeople.load(model).harder(difficulty)
        rng = np.random.default_rng((seed, 100 + half))
        several, singles = people, 2 * people
        who = np.concatenate([np.repeat(np.arange(several), 8), several + np.arange(singles)])
        rows = drawn.faces(rng, drawn.people(rng, several + singles), who)
        labels = np.array([f"v{half}-{i}" if i < several else "" for i in who.tolist()])
        parts.append(LabelledPeople(rows, labels))
    train, test = parts
    return TrainTestSplit(train, test, f"virtual people, difficulty {difficulty:g}", is_virtual=True)


def _part(people: LabelledPeople, rows: NDArray[np.bool_]) -> LabelledPeople:
    return LabelledPeople(people.descriptors[rows], people.labels[rows])
