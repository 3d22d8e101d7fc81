"""Faces found and described in worker processes: of portraits, of the pairs' photos, and of distractors."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from setnet.collect.run import CollectRun, CollectSettings, Row, Work, pack, unpack
from setnet.faces import FaceSettings
from setnet.library.describe import main_face
from setnet.library.folder_scan import FolderScan
from setnet.library.photo_reader import PhotoReader, PhotoResult, PhotoTask

MIN_FACES = 2  # of a photo


def portrait_rows(run: CollectRun, work: Work) -> Iterator[Row]:
    """Yield a row per portrait with its main face; a file without a face is named and left out."""
    files: dict[str, str] = {}
    for person in run.manifest("names").kept_rows():
        for file in FolderScan([os.fsencode(person["folder"])]).files():
            if (path := os.fsdecode(file.path)) not in work.done:
                files[path] = person["name"]
    for path, result in read_faces(run.settings, files, work.processes):
        row: Row = {"portrait": path, "name": files[path]}
        if result.reason is not None:
            yield row | {"kept": False, "reason": "cannot be read", "detail": result.reason}
        elif result.descriptors is None:
            yield row | {"kept": False, "reason": "no face"}
        else:
            yield row | {"kept": True, "descriptor": pack(result.descriptors[main_face(result)])}


def gallery(run: CollectRun) -> dict[str, NDArray[np.float32]]:
    """Return the descriptors of each person's portraits, (n, D), people in the order of the list."""
    found: dict[str, list[NDArray[np.float32]]] = {}
    for row in run.manifest("portraits").kept_rows():
        found.setdefault(row["name"], []).append(unpack(row["descriptor"]))
    return {name: np.stack(rows) for name, rows in found.items()}


def known_names(run: CollectRun) -> dict[str, tuple[str, ...]]:
    """Return the names of whom there is a portrait, with their aliases."""
    usable = {row["name"] for row in run.manifest("portraits").kept_rows()}
    return {
        row["name"]: tuple(row["aliases"])
        for row in run.manifest("names").kept_rows()
        if row["name"] in usable
    }


def face_rows(run: CollectRun, work: Work) -> Iterator[Row]:
    """Yield a row per photo that the filter of texts kept, with its faces."""

    def remaining_rows() -> Iterator[Row]:
        return (row for row in run.manifest("photos").kept_rows() if row["photo"] not in work.done)

    found = read_faces(run.settings, (row["photo"] for row in remaining_rows()), work.processes)
    for row, (photo, result) in zip(remaining_rows(), found, strict=True):
        about = {"query": row["query"], "text": row["text"]}
        yield face_row(photo, result) | about


def distractor_rows(run: CollectRun, work: Work) -> Iterator[Row]:
    """Yield a row per photo of the folders of distractors, with its faces."""
    files = FolderScan([os.fsencode(folder) for folder in run.settings.distractors]).files()
    remaining_rows = [path for file in files if (path := os.fsdecode(file.path)) not in work.done]
    for photo, result in read_faces(run.settings, remaining_rows, work.processes):
        yield face_row(photo, result)


def face_row(photo: str, result: PhotoResult) -> Row:
    """Return the row of a photo: its size and faces, or why it is dropped."""
    row: Row = {"photo": photo}
    if result.reason is not None:
        return row | {"kept": False, "reason": "cannot be read", "detail": result.reason}
    if len(result.faces) < MIN_FACES or result.descriptors is None:
        detail = f"{len(result.faces)} of {MIN_FACES}"
        return row | {"kept": False, "reason": "too few faces", "detail": detail}
    faces = [
        {
            "box": [round(float(side), 1) for side in face.box],
            "score": round(float(face.score), 4),
            "landmarks": pack(np.frombuffer(face.landmarks, "<f4")),
            "descriptor": pack(descriptor),
        }
        for face, descriptor in zip(result.faces, result.descriptors, strict=True)
    ]
    return row | {"kept": True, "width": result.width, "height": result.height, "faces": faces}


def read_faces(
    settings: CollectSettings, photos: Iterable[str], workers: int
) -> Iterator[tuple[str, PhotoResult]]:
    """Yield each photo with its faces, in the order given: manifests are the same in every run."""
    faces = FaceSettings(settings.detector, settings.descriptor, settings.min_face)
    under_way: deque[str] = deque()
    waiting: dict[bytes, PhotoResult] = {}

    def tasks() -> Iterator[PhotoTask]:
        for photo in photos:
            under_way.append(photo)
            yield PhotoTask(os.fsencode(photo))

    with PhotoReader(faces, workers) as reader:
        for result in reader.results(tasks()):
            waiting[result.path] = result
            while under_way and (key := os.fsencode(under_way[0])) in waiting:
                yield under_way.popleft(), waiting.pop(key)
