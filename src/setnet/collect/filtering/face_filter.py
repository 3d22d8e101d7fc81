"""The faces of photos, found in worker processes; photos with too few are dropped."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from setnet.collect.run.manifest import Row
from setnet.collect.run.packed import packed
from setnet.collect.run.run_folder import CollectRun
from setnet.collect.run.run_settings import CollectSettings
from setnet.faces import FaceSettings
from setnet.library import FolderScan, PhotoReader, PhotoResult, PhotoTask
from setnet.system import usable_cores


def face_rows(run: CollectRun, done: Collection[str], workers: int | None = None) -> Iterator[Row]:
    """Yield a row per photo that the filter of texts kept, with its faces."""

    def left() -> Iterator[Row]:
        return (row for row in run.manifest("photos").kept() if row["photo"] not in done)

    found = read_faces(run.settings, (row["photo"] for row in left()), workers)
    for row, (photo, result) in zip(left(), found, strict=True):
        about = {"query": row["query"], "text": row["text"]}
        yield face_row(photo, result, run.settings.least_faces) | about


def distractor_rows(run: CollectRun, done: Collection[str], workers: int | None = None) -> Iterator[Row]:
    """Yield a row per photo of the folders of distractors, with its faces."""
    files = FolderScan([os.fsencode(folder) for folder in run.settings.distractors]).files()
    left = [path for file in files if (path := os.fsdecode(file.path)) not in done]
    for photo, result in read_faces(run.settings, left, workers):
        yield face_row(photo, result, run.settings.least_faces)


def face_row(photo: str, result: PhotoResult, least: int) -> Row:
    """Return the row of a photo: its size and faces, or why it is dropped."""
    row: Row = {"photo": photo}
    if result.reason is not None:
        return row | {"kept": False, "reason": "cannot be read", "detail": result.reason}
    if len(result.faces) < least or result.descriptors is None:
        detail = f"{len(result.faces)} of {least}"
        return row | {"kept": False, "reason": "too few faces", "detail": detail}
    faces = [
        {
            "box": [round(float(side), 1) for side in face.box],
            "score": round(float(face.score), 4),
            "landmarks": packed(np.frombuffer(face.landmarks, "<f4")),
            "descriptor": packed(descriptor),
        }
        for face, descriptor in zip(result.faces, result.descriptors, strict=True)
    ]
    return row | {"kept": True, "width": result.width, "height": result.height, "faces": faces}


def read_faces(
    settings: CollectSettings, photos: Iterable[str], workers: int | None = None
) -> Iterator[tuple[str, PhotoResult]]:
    """Yield each photo with its faces, in the order given: manifests are the same in every run."""
    faces = FaceSettings(settings.detector, settings.descriptor, settings.min_face)
    under_way: deque[str] = deque()
    waiting: dict[bytes, PhotoResult] = {}

    def tasks() -> Iterator[PhotoTask]:
        for photo in photos:
            under_way.append(photo)
            yield PhotoTask(os.fsencode(photo))

    with PhotoReader(faces, usable_cores() if workers is None else workers) as reader:
        for result in reader.results(tasks()):
            waiting[result.path] = result
            while under_way and (key := os.fsencode(under_way[0])) in waiting:
                yield under_way.popleft(), waiting.pop(key)
