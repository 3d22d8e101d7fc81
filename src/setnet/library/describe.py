"""Descriptors of folders of photos as files, without a library, each face labelled by its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.errors import InvalidInputError
from setnet.library.descriptor_files import check_output_place, write_descriptor_file
from setnet.library.folder_scan import FolderScan
from setnet.library.index_run import IndexProgress
from setnet.library.paths import as_path, display_path, existing_paths
from setnet.library.photo_reader import PhotoReader, PhotoResult, PhotoTask
from setnet.system import usable_cores

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.index_run import Progress


@dataclass(frozen=True, slots=True)
class DescribeReport:
    """What a descriptor file was made from."""

    photos: int
    descriptors: int
    labels: int
    without_face: tuple[Path, ...]
    failed: tuple[tuple[Path, str], ...]
    seconds: float


def describe_photos(
    folders: Sequence[str | os.PathLike[str]],
    out: Path,
    settings: FaceSettings,
    *,
    all_faces: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> DescribeReport:
    """Describe the main face of each photo and write `descriptors`, `labels`, `paths`, `boxes`, `quality`.

    The label is the name of the folder a photo lies in; `quality` has the numbers of `Quality` in order, and
    `model` says which descriptor in which metric.
    With `all_faces` the other faces follow their photo's main one, labelled "" (unknown).
    """
    start = perf_counter()
    check_output_place(out)  # now, and not after hours of work
    roots = existing_paths(folders)
    tasks = [PhotoTask(file.path) for file in FolderScan(roots).files()]
    if not tasks:
        raise InvalidInputError(f"no photo in {', '.join(map(display_path, roots))}")
    results: dict[bytes, PhotoResult] = {}
    faces = failed = 0
    count = min(usable_cores() if workers is None else workers, len(tasks))
    with PhotoReader(settings, count) as reader:
        for result in reader.results(tasks):
            results[result.path] = result
            faces += len(result.faces)
            failed += result.reason is not None
            if progress is not None:
                seconds = perf_counter() - start
                progress(IndexProgress("describing", len(results), len(tasks), 0, faces, failed, seconds))
    from setnet.faces import model_entry

    ordered = [results[task.path] for task in tasks]
    rows = [row for result in ordered for row in _rows(result, all_faces)]
    if not rows:
        raise InvalidInputError("no face in any of the photos: nothing to write")
    vectors, labels, paths, boxes, quality = zip(*rows, strict=True)
    write_descriptor_file(
        out,
        np.stack(vectors),
        labels,
        paths=np.array(paths),
        boxes=np.array(boxes, np.float32),
        quality=np.array(quality, np.float32),
        model=np.array(model_entry(settings.descriptor, "descriptor").identity),
    )
    return DescribeReport(
        photos=len(results),
        descriptors=len(rows),
        labels=len(set(labels) - {""}),
        without_face=tuple(as_path(r.path) for r in ordered if r.reason is None and not r.faces),
        failed=tuple((as_path(r.path), why) for r in ordered if (why := r.reason or r.note)),
        seconds=perf_counter() - start,
    )


def _rows(result: PhotoResult, all_faces: bool) -> Iterator[tuple[Any, ...]]:
    """Yield descriptor, label, path, box and quality of a photo's main face, and of the others."""
    if result.descriptors is None:
        return
    first, folder = main_face(result), os.path.basename(os.path.dirname(result.path))
    others = [i for i in range(len(result.faces)) if i != first] if all_faces else []
    for face in (first, *others):
        label, stored = display_path(folder) if face == first else "", result.faces[face]
        facts = display_path(result.path), stored.box, list(stored.quality.values())
        yield result.descriptors[face], label, *facts


def main_face(result: PhotoResult) -> int:
    """Return the face a photo is about: large, and near the middle where several are."""
    middle = result.width / 2, result.height / 2

    def weight(box: tuple[float, float, float, float]) -> float:
        x0, y0, x1, y1 = box
        away = ((x0 + x1) / 2 - middle[0]) ** 2 + ((y0 + y1) / 2 - middle[1]) ** 2
        return (x1 - x0) * (y1 - y0) - 2.0 * away

    return max(range(len(result.faces)), key=lambda i: weight(result.faces[i].box))
