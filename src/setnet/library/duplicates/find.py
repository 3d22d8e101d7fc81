"""Finds near-duplicates among photos: describe each, look for near ones, compare these, group what agrees."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from setnet.library.duplicates.candidates import candidates
from setnet.library.duplicates.described_photo import DescribedPhoto
from setnet.library.duplicates.disjoint_sets import DisjointSets
from setnet.library.duplicates.groups import DuplicateGroup, merged_groups
from setnet.library.duplicates.photo_pairs import PhotoPairs
from setnet.library.grouping.progress import OnProgress
from setnet.library.store.paths import absolute, as_path
from setnet.system import usable_cores
from setnet.workers import Limits

AGREEMENT = 0.5  # share of a photo that must be the same; chosen on LFW's training half

OnFailure = Callable[[Path, str], None]
Pair = tuple[bytes, bytes, bool]  # two photos, the second maybe mirrored


def find_duplicates(
    photos: Sequence[str | os.PathLike[str]],
    *,
    workers: int | None = None,
    progress: OnProgress | None = None,
    on_failure: OnFailure | None = None,
    limits: Limits | None = None,
) -> list[DuplicateGroup]:
    """Return the groups of photos that are copies of one photograph; nothing is written or changed.

    Copies may be resized, cropped, recompressed, recoloured, written on or mirrored. The result does not
    depend on the order of the photos.

    Parameters
    ----------
    photos
        Files of photos.
    workers
        Worker processes, by default one per core; 0 works in this process.
    progress
        Called with what is being done, how much of it is, of how much.
    on_failure
        Called with each photo that cannot be read, and why; the others are grouped.
    limits
        Time and memory that one photo may take.
    """
    paths = sorted({absolute(photo) for photo in photos})

    def failed(path: bytes, reason: str) -> None:
        if on_failure is not None:
            on_failure(as_path(path), reason)

    count = min(usable_cores() if workers is None else workers, len(paths))
    with PhotoPairs(count, failed, limits) as pairs:
        described = list(_described(pairs, paths, progress))
        described.sort(key=lambda photo: photo.path)
        return _grouped(pairs, described, progress)


def _described(
    pairs: PhotoPairs, paths: Sequence[bytes], progress: OnProgress | None
) -> Iterator[DescribedPhoto]:
    for done, photo in enumerate(pairs.described(paths), 1):
        if progress is not None:
            progress("reading", done, len(paths))
        if photo is not None:
            yield photo


def _grouped(
    pairs: PhotoPairs, photos: Sequence[DescribedPhoto], progress: OnProgress | None
) -> list[DuplicateGroup]:
    sets = DisjointSets[bytes]()
    first: dict[bytes, DescribedPhoto] = {}
    for photo in photos:
        sets.link(first.setdefault(photo.hash, photo).path, photo.path)
    different = list(first.values())
    if different:
        vlads = np.stack([photo.vlads for photo in different])
        found = [
            (different[near.one].path, different[near.other].path, near.mirrored)
            for near in candidates(vlads, progress=progress)
        ]
        _link(sets, pairs, found, progress)
    pixels = {photo.path: photo.pixels for photo in photos}
    return merged_groups(
        DuplicateGroup.of({as_path(path): pixels[path] for path in group})
        for group in sets.groups()
        if len(group) > 1
    )


def _link(
    sets: DisjointSets[bytes], pairs: PhotoPairs, found: Sequence[Pair], progress: OnProgress | None
) -> None:
    """Link the pairs that are the same photograph; those linked through others need no look."""
    apart = _still_apart(sets, found, progress)
    for (one, other, _), agreement in pairs.agreements(apart):
        if agreement >= AGREEMENT:
            sets.link(one, other)


def _still_apart(
    sets: DisjointSets[bytes], found: Iterable[Pair], progress: OnProgress | None
) -> Iterator[Pair]:
    found = list(found)
    for done, pair in enumerate(found, 1):
        if progress is not None:
            progress("verifying", done, len(found))
        if not sets.linked(pair[0], pair[1]):
            yield pair
