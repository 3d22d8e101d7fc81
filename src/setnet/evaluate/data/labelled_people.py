"""Labelled descriptors divided by people: one half to fit on (whitening, scores), the other to test on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.data.splits import read_split
from setnet.heads import unit
from setnet.library import read_descriptors
from setnet.train import VirtualPeople

LEAST_PEOPLE = 6
# Parameters of virtual people, fitted on LFW's test half for simulated worlds and on its training half for
# whatever is fitted or trained: `setnet evaluate fit LFW.npz --half test` made the first (docs/evaluate.md).
LFW_LIKE = Path(__file__).parent / "sface_people_test.npz"
LFW_LIKE_TRAIN = Path(__file__).parent / "sface_people_train.npz"


@dataclass(frozen=True, eq=False)
class LabelledPeople:
    """Descriptors at unit length and whose each is; an empty label means an unknown person."""

    descriptors: NDArray[np.float32]
    labels: NDArray[np.str_]

    @property
    def dim(self) -> int:
        """Dimension of the descriptors."""
        return int(self.descriptors.shape[1])

    def groups(self, least: int = 1) -> list[NDArray[np.int64]]:
        """Return the rows of each known person with ``least`` faces or more, people in order of names."""
        names, owner = np.unique(self.labels, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        ends = np.cumsum(np.bincount(owner, minlength=len(names)))
        parts = zip(names, np.split(order, ends)[:-1], strict=True)
        return [rows for name, rows in parts if name != "" and len(rows) >= least]


@dataclass(frozen=True, eq=False)
class Halves:
    """People to fit on, people to test on, and in words what they are."""

    train: LabelledPeople
    test: LabelledPeople
    name: str


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
    if several < LEAST_PEOPLE:
        raise InvalidInputError(
            f"{path}: {several} people have two faces or more, {len(people.groups())} are known; experiments "
            f"need {LEAST_PEOPLE} or more with several faces, one to query with and one to find"
        )
    return people


def divided(people: LabelledPeople, name: str, seed: int = 0) -> Halves:
    """Return two halves that share nobody: LFW's fixed split if these are its people, else a random one."""
    split = read_split()
    names = np.unique(people.labels[people.labels != ""])
    known = np.isin(names, list(split.train | split.test))
    if known.mean() > 0.9:
        test = np.isin(people.labels, list(split.test))
        train = np.isin(people.labels, list(split.train))
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
    halves = Halves(_part(people, train), _part(people, test), words)
    for half, part in (("fit", halves.train), ("test", halves.test)):
        if len(part.groups(2)) < LEAST_PEOPLE // 2:
            raise InvalidInputError(
                f"{name}: {len(part.groups(2))} people to {half} on have two faces or more, "
                f"{LEAST_PEOPLE // 2} are needed; LFW's people have a fixed split: give both halves"
            )
    return halves


def virtual_halves(path: Path | None, difficulty: float, seed: int, people: int = 1500) -> Halves:
    """Return virtual people in place of a descriptor file; nobody is in both halves.

    They are those of a file; without one, people to fit on are like LFW's training half, others like its test
    half.
    """
    models = VirtualPeople.load(path or LFW_LIKE_TRAIN).to_train_with(), VirtualPeople.load(path or LFW_LIKE)
    parts = []
    for half, model in enumerate(models):
        drawn = model.harder(difficulty)
        rng = np.random.default_rng((seed, 100 + half))
        several, singles = people, 2 * people
        who = np.concatenate([np.repeat(np.arange(several), 8), several + np.arange(singles)])
        rows = drawn.faces(rng, drawn.people(rng, several + singles), who)
        labels = np.array([f"v{half}-{i}" if i < several else "" for i in who.tolist()])
        parts.append(LabelledPeople(rows, labels))
    return Halves(parts[0], parts[1], f"virtual people, difficulty {difficulty:g}")


def _part(people: LabelledPeople, rows: NDArray[np.bool_]) -> LabelledPeople:
    return LabelledPeople(people.descriptors[rows], people.labels[rows])
