"""Near-duplicates among the photos of a library: what it knows of them saves work and finds more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from setnet.engine import nearest_neighbours
from setnet.heads import unit
from setnet.library.duplicates.copy_groups import DuplicateGroup
from setnet.library.duplicates.dense_sift import Floats
from setnet.library.duplicates.described_photo import DescribedPhoto
from setnet.library.duplicates.find import OnFailure, duplicates_of
from setnet.library.duplicates.vlad_cache import VladCache
from setnet.library.grouping.progress import OnProgress
from setnet.library.store.location import VLADS
from setnet.library.store.photo_catalog import KnownFile

if TYPE_CHECKING:
    from setnet.library.library import Library
    from setnet.sandbox import Limits

SAME_FACE = 0.90  # similarity from which two faces may be one face in two copies of a photo
_MOST = 8  # such faces of a face
_EXACT = 20_000  # faces up to which all are compared with all


def library_duplicates(
    library: Library,
    *,
    workers: int | None = None,
    progress: OnProgress | None = None,
    on_failure: OnFailure | None = None,
    limits: Limits | None = None,
) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates among a library's photos; the options are `find_duplicates`'."""
    files = {
        path: file
        for path, file in library.catalog.known_files().items()
        if file.state == "ready" and not file.is_video
    }
    contents = {file.hash for file in files.values() if file.hash is not None}
    cache = VladCache(library.path / VLADS, contents)
    try:
        return duplicates_of(
            sorted(files),
            known=dict(_known(files, cache)),
            alike=_with_the_same_face(library, progress),
            on_described=cache.store,
            workers=workers,
            progress=progress,
            on_failure=on_failure,
            limits=limits,
        )
    finally:
        cache.close()


def _known(files: dict[bytes, KnownFile], cache: VladCache) -> Iterator[tuple[bytes, DescribedPhoto]]:
    """Yield the photos whose VLADs are kept and whose files are as they were when they were indexed."""
    for path, file in files.items():
        if file.hash in cache.known and _is_unchanged(path, file):
            pixels, vlads = cache.known[file.hash]
            yield path, DescribedPhoto(path, file.hash, pixels, vlads)


def _is_unchanged(path: bytes, file: KnownFile) -> bool:
    try:
        info = os.stat(path)
    except OSError:
        return False
    return (info.st_size, info.st_mtime_ns) == (file.size, file.mtime_ns)


def _with_the_same_face(library: Library, progress: OnProgress | None) -> list[tuple[bytes, bytes]]:
    """Return pairs of photos with a face that is all but the same: copies, however they were cropped."""
    owners: list[bytes] = []
    rows: list[Floats] = []
    for photo in library.catalog.all_photos():
        if photo.faces and photo.kind == "photo":
            found = library.descriptors(photo.id)
            rows.append(found)
            owners += [photo.stored_path] * len(found)
    if not rows:
        return []

    def told(done: int, total: int) -> None:
        if progress is not None:
            progress("comparing faces", done, total)

    near = nearest_neighbours(unit(np.concatenate(rows)), _MOST, SAME_FACE, exact=_EXACT, progress=told)
    pairs = zip(near.row.tolist(), near.other.tolist(), strict=True)
    found_pairs = {tuple(sorted((owners[one], owners[other]))) for one, other in pairs}
    return sorted((one, other) for one, other in found_pairs if one != other)
