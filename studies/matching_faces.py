"""Labelled faces to fit matches on and to test them on: with quality, degraded copies, right labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.people import LabelledPeople, read_people, train_test_split
from setnet.library.descriptor_files import read_model
from studies.score_fitting import LabelledFaces

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


def check_one_model(paths: Sequence[Path]) -> str:
    """Return the model of descriptor files that are used together; raise when there are two."""
    made_by = {found: path for path in paths if (found := read_model(path))}
    if len(made_by) > 1:
        (one, first), (other, second) = list(made_by.items())[:2]
        raise InvalidInputError(
            f"{first} was made by {one}, {second} by {other}: descriptors of two models or metrics do not "
            "compare; describe the photos of one again (`setnet describe`)"
        )
    return next(iter(made_by), "")


@dataclass(frozen=True, eq=False)
class MatchingFaces:
    """Faces of people, as their photos are and in degraded copies; `labelled` has wrong labels too."""

    faces: LabelledFaces
    degraded: dict[str, LabelledFaces]
    labelled: LabelledFaces


@dataclass(frozen=True, eq=False)
class _File:
    people: LabelledPeople
    keys: list[str]
    quality: NDArray[np.float32]
    right: NDArray[np.bool_]


def read_matching_faces(
    path: Path, degraded: Sequence[Path] = (), seed: int = 0
) -> tuple[MatchingFaces, MatchingFaces, str]:
    """Return faces to fit on, faces to test on, and in words what they are."""
    check_one_model([path, *degraded])
    plain = _read(path)
    worse = {copy.stem: _read(copy) for copy in degraded}
    split = train_test_split(plain.people, path.name, seed)
    train, test = (
        _half(plain, worse, set(half.labels.tolist()) - {""}) for half in (split.train, split.test)
    )
    return train, test, split.name


def faces_of_people(people: LabelledPeople) -> MatchingFaces:
    """Return people who have descriptors only; everybody unknown is a person of their own."""
    faces = LabelledFaces(people.descriptors, _owners(people.labels))
    return MatchingFaces(faces, {}, faces)


def _read(path: Path) -> _File:
    people = read_people(path)
    n = len(people.labels)
    with np.load(path, allow_pickle=False) as file:
        paths = file["paths"].tolist() if "paths" in file else None
        quality = file["quality"] if "quality" in file else np.full((n, 6), np.nan)
    if quality.shape != (n, 6) or (paths is not None and len(paths) != n):
        raise InvalidInputError(f"{path}: 'paths' or 'quality' does not fit its {n} descriptors")
    _, right = corrected(people.labels, paths)
    keys = [str(i) for i in range(n)] if paths is None else [photo_key(p) for p in paths]
    return _File(people, keys, quality.astype(np.float32), right)


def _half(plain: _File, worse: dict[str, _File], names: set[str]) -> MatchingFaces:
    rows = np.flatnonzero(np.isin(plain.people.labels, sorted(names)))
    labelled = _faces(plain, rows, plain.people.labels)
    labels, _ = corrected(plain.people.labels, None)
    rows = rows[plain.right[rows]]
    faces = _faces(plain, rows, labels)
    degraded = {}
    for name, copy in worse.items():
        place = {key: i for i, key in enumerate(copy.keys)}
        both = [(row, place[plain.keys[row]]) for row in rows.tolist() if plain.keys[row] in place]
        if not both:
            raise InvalidInputError(f"{name}: no photo of it is a copy of one of the descriptor file")
        here, there = (np.array(side) for side in zip(*both, strict=True))
        of_copy = _faces(copy, there, copy.people.labels)
        degraded[name] = replace(of_copy, owner=_owners(labels[here]), shown=plain.people.descriptors[here])
    return MatchingFaces(faces, degraded, labelled)


def _faces(file: _File, rows: NDArray[np.int64], labels: NDArray[np.str_]) -> LabelledFaces:
    return LabelledFaces(file.people.descriptors[rows], _owners(labels[rows]), file.quality[rows])


def _owners(labels: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return a number for each person; an empty label is a person of its own."""
    unique = np.array([label or f"\0{i}" for i, label in enumerate(labels.tolist())])
    return np.unique(unique, return_inverse=True)[1].astype(np.int64)
