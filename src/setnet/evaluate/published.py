"""Data sets of faces as their authors publish them: lists of boxes, of identities and of templates."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.people import read_split
from setnet.faces.face import Box
from setnet.library.descriptor_files import read_arrays
from setnet.train.faces import append_places, identity_photos

PARTS = ("train", "test")  # of VGGFace2, and of a split


def split_photos(
    data: Path, split: Path | None = None
) -> tuple[list[Path], NDArray[np.str_], NDArray[np.bool_]]:
    """Return the photos of a folder of identities, the identity of each, and which are for training.

    The identities are folders in `data` itself, or in ``train`` and ``test`` below it.
    """
    if not data.is_dir():
        raise InvalidInputError(f"{data}: no such folder; expected folders of identities in it")
    parts = [data / part for part in PARTS if (data / part).is_dir()]
    paths = [path for part in parts or [data] for photos in identity_photos(part) for path in photos]
    names = np.array([path.parent.name for path in paths], dtype=np.str_)
    people = np.unique(names)
    if split is not None:
        train, test = _read_split(split)
    elif listed := vggface2_identities(data):
        train, test = (
            {name for name, is_train in listed.items() if is_train == want} for want in (True, False)
        )
    elif len(parts) == len(PARTS):
        train, test = ({path.name for path in part.iterdir()} for part in parts)
    elif np.isin(people, sorted(read_split().train | read_split().test)).mean() > 0.9:
        train, test = set(read_split().train), set(read_split().test)
    else:
        order = np.random.default_rng(0).permutation(people).tolist()
        train, test = set(order[: len(order) // 2]), set(order[len(order) // 2 :])
    if both := sorted(train & test):
        raise InvalidInputError(f"{both[0]} is to be trained on and tested: a person belongs to one part")
    used = np.isin(names, sorted(train | test))
    chosen = np.isin(names[used], sorted(train))
    if not chosen.any() or chosen.all():
        raise InvalidInputError(f"{data}: {chosen.sum()} photos to train on, {(~chosen).sum()} to test on")
    return [paths[row] for row in np.flatnonzero(used)], names[used], chosen


def _read_split(path: Path) -> tuple[set[str], set[str]]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return set(stored["train"]), set(stored["test"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f'{path} is no split: expected {{"train": [names], "test": [names]}} ({error!r})'
        ) from error


def _columns(path: Path) -> list[str]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [name.strip() for name in next(csv.reader(file, skipinitialspace=True), [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{path}: not a readable list ({error})") from error


def _table(path: Path, *columns: str) -> Iterator[list[str]]:
    """Yield the values of some columns, found by their names, of a CSV file."""
    head = _columns(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, skipinitialspace=True)
        next(rows, None)
        if missing := [name for name in columns if name not in head]:
            raise InvalidInputError(f"{path}: no column {missing[0]}; its columns are {', '.join(head)}")
        places = [head.index(name) for name in columns]
        for number, row in enumerate(rows, start=2):
            if row and len(row) <= max(places):
                raise InvalidInputError(f"{path}, line {number}: {len(row)} of {len(head)} columns")
            if row:
                yield [row[place].strip() for place in places]


def _find(data: Path, name: str) -> Path | None:
    """Return a list of VGGFace2, which lies in one of several folders by how it was unpacked."""
    found = [data / place / name for place in ("", "bb_landmark", "meta", "meta/bb_landmark")]
    return next((path for path in found if path.is_file()), None)


def vggface2_identities(data: Path) -> Mapping[str, bool]:
    """Return VGGFace2's identities, each with whether it is trained on: ``identity_meta.csv``."""
    path = _find(data, "identity_meta.csv")
    return {} if path is None else {name: flag == "1" for name, flag in _table(path, "Class_ID", "Flag")}


CORNERS = [f"P{number}{axis}" for number in range(1, 6) for axis in "XY"]


def import_places(data: Path, places: Path) -> int:
    """Put VGGFace2's own boxes and landmarks (``loose_bb_*.csv``) into a file of places; return how many.

    No face is looked for in these photos then. A file of places that is there stays as it is.
    """
    if places.is_file():
        return 0
    photos: list[Path] = []
    rows: list[list[float]] = []
    for part in PARTS:
        boxes, landmarks = _find(data, f"loose_bb_{part}.csv"), _find(data, f"loose_landmark_{part}.csv")
        if boxes is None or landmarks is None:
            continue
        points = {name: corners for name, *corners in _table(landmarks, "NAME_ID", *CORNERS)}
        for name, *box in _table(boxes, "NAME_ID", "X", "Y", "W", "H"):
            if name not in points:
                raise InvalidInputError(f"{landmarks}: no landmarks of {name}, whose box is in {boxes.name}")
            try:
                x, y, width, height = map(float, box)
                rows.append([x, y, x + width, y + height, *map(float, points[name])])
            except ValueError as error:
                raise InvalidInputError(f"{boxes}, {name}: {error}") from error
            photos.append(Path(f"{name}.jpg"))
    if photos:
        append_places(places, photos, np.array(rows, np.float32))
    return len(photos)


@dataclass(frozen=True)
class Template:
    """Faces of one person compared as one: rows of a descriptor file, and how many were not found."""

    subject: str
    rows: tuple[int, ...]
    missed: int


def read_templates(protocol: Path, described: Path) -> list[Template]:
    """Return the templates of IJB-A's or IJB-B's lists, such as ``ijbb_1N_probe_mixed.csv``.

    Parameters
    ----------
    described
        Descriptors of all faces in the benchmark's photos: `setnet describe PHOTOS --all-faces`. A face of
        the list is the one there whose box overlaps its own most, by `OVERLAP` at least.
    """
    paths, boxes = read_arrays(described, ["paths", "boxes"])
    faces: dict[str, list[int]] = {}
    for row, path in enumerate(paths.tolist()):
        faces.setdefault(_photo(path), []).append(row)
    found: dict[str, tuple[str, list[int]]] = {}
    missed: Counter[str] = Counter()
    file = "FILE" if "FILE" in _columns(protocol) else "FILENAME"
    box = ("FACE_X", "FACE_Y", "FACE_WIDTH", "FACE_HEIGHT")
    for template, subject, name, *corner in _table(protocol, "TEMPLATE_ID", "SUBJECT_ID", file, *box):
        rows = found.setdefault(template, (subject, []))[1]
        try:
            x, y, width, height = map(float, corner)
        except ValueError as error:
            raise InvalidInputError(f"{protocol}, template {template}, {name}: {error}") from error
        wanted = Box(x, y, x + width, y + height)
        near = {row: wanted.overlap(Box(*boxes[row].tolist())) for row in faces.get(_photo(name), ())}
        best = max(near, key=near.__getitem__, default=-1)
        if best >= 0 and near[best] >= OVERLAP:
            rows.append(best)
        else:
            missed[template] += 1
    return [Template(subject, tuple(rows), missed[name]) for name, (subject, rows) in found.items()]


OVERLAP = 0.3  # of two boxes, their common part over all they cover


def _photo(path: str) -> str:
    return "/".join(PurePath(path).parts[-2:])
