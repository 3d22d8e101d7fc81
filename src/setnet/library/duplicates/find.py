"""Finds near-duplicates among photos: describe each, look for near ones, compare these, group what agrees."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from setnet.library.duplicates.copy_candidates import candidates
from setnet.library.duplicates.copy_groups import DuplicateGroup, merged_groups
from setnet.library.duplicates.described_photo import DescribedPhoto
from setnet.library.duplicates.disjoint_sets import DisjointSets
from setnet.library.duplicates.photo_pairs import Pair, PhotoPairs
from setnet.library.grouping.progress import OnProgress
from setnet.library.indexing.folder_scan import FolderScan
from setnet.library.store.paths import absolute, as_path
from setnet.sandbox import Limits
from setnet.system import usable_cores

AGREEMENT = 0.55  # share of pieces that must be the same: halfway on LFW's training half
_BATCH = 256  # photos that are given to `on_described` together

OnFailure = Callable[[Path, str], None]
OnDescribed = Callable[[Sequence[DescribedPhoto]], None]


def find_duplicates(
    photos: Sequence[str | os.PathLike[str]],
    *,
    workers: int | None = None,
    progress: OnProgress | None = None,
    on_failure: OnFailure | None = None,
    limits: Limits | None = None,
) -> list[DuplicateGroup]:
    """Return the groups of photos that are copies of one photograph; nothing is written or changed.

    Copies may be resized, cropped, recompressed, recoloured, written on or mirrored. Files with the same
    bytes are copies too, links to one file are not. The order of the photos does not matter.

    Parameters
    ----------
    photos
        Files of photos, or folders of them.
    workers
        Worker processes, by default one per core; 0 works in this process.
    progress
        Called with what is being done, how much of it is, of how much.
    on_failure
        Called with each photo or folder that cannot be read, and why; the others are grouped.
    limits
        Time and memory that one photo may take.
    """
    scan = FolderScan(sorted({absolute(photo) for photo in photos}))
    paths = _files(file.path for file in scan.files())
    for path, reason in scan.unreadable:
        if on_failure is not None:
            on_failure(as_path(path), reason)
    return duplicates_of(paths, workers=workers, progress=progress, on_failure=on_failure, limits=limits)


def duplicates_of(
    paths: Sequence[bytes],
    *,
    known: Mapping[bytes, DescribedPhoto] | None = None,
    alike: Iterable[tuple[bytes, bytes]] = (),
    on_described: OnDescribed | None = None,
    pairs: PhotoPairs | None = None,
    workers: int | None = None,
    progress: OnProgress | None = None,
    on_failure: OnFailure | None = None,
    limits: Limits | None = None,
) -> list[DuplicateGroup]:
    """Return the groups among photos, given as sorted absolute paths; the options of `find_duplicates`, and:

    Parameters
    ----------
    known
        Photos by path that need not be read again.
    alike
        Further pairs of photos to compare, both ways round.
    on_described
        Called with a few hundred photos at a time that were read.
    pairs
        What reads photos, for many calls one after another: `workers`, `on_failure` and `limits` are its own.
    """

    def failed(path: bytes, reason: str) -> None:
        if on_failure is not None:
            on_failure(as_path(path), reason)

    say = progress or (lambda stage, done, total: None)
    described = dict(known or {})
    unread = [path for path in paths if path not in described]
    count = min(usable_cores() if workers is None else workers, len(paths))
    with nullcontext(pairs) if pairs is not None else PhotoPairs(count, failed, limits) as reader:
        _describe(reader, unread, described, say, on_described)
        photos = [described[path] for path in paths if path in described]
        sets = _same_content(photos)
        _link(sets, reader, [*_near(photos, say), *_both_ways(alike, described)], say)
    pixels = {photo.path: photo.pixels for photo in photos}
    groups = (group for group in sets.groups() if len(group) > 1)
    return merged_groups(
        DuplicateGroup.of({as_path(path): pixels[path] for path in group}) for group in groups
    )


def _files(paths: Iterable[bytes]) -> list[bytes]:
    """Return sorted paths of different files: where one is a link to another, the other."""
    found: dict[bytes, bytes] = {}
    for path in sorted(paths, key=lambda path: (os.path.islink(path), path)):
        found.setdefault(os.path.realpath(path), path)
    return sorted(found.values())


def _describe(
    pairs: PhotoPairs,
    paths: Sequence[bytes],
    described: dict[bytes, DescribedPhoto],
    say: OnProgress,
    on_described: OnDescribed | None,
) -> None:
    """Add the photos of these paths to those `described`."""
    keep = on_described or (lambda photos: None)
    batch: list[DescribedPhoto] = []
    try:
        for done, photo in enumerate(pairs.described(paths), 1):
            if photo is not None:
                described[photo.path] = photo
                batch.append(photo)
            if len(batch) >= _BATCH:
                keep(batch)
                batch = []
            say("reading", done, len(paths))
    finally:  # also after Ctrl-C: what was read is kept
        keep(batch)


def _same_content(photos: Iterable[DescribedPhoto]) -> DisjointSets[bytes]:
    """Return sets of files with the same bytes, which need no look."""
    sets = DisjointSets[bytes]()
    first: dict[bytes, bytes] = {}
    for photo in photos:
        sets.link(first.setdefault(photo.hash, photo.path), photo.path)
    return sets


def _near(photos: Sequence[DescribedPhoto], say: OnProgress) -> Iterator[Pair]:
    """Yield pairs of photos with different bytes and near VLADs, the most similar first."""
    different = list({photo.hash: photo for photo in reversed(photos)}.values())[::-1]
    if different:
        vlads = np.stack([photo.vlads for photo in different])
        for near in candidates(vlads, progress=say):
            yield different[near.one].path, different[near.other].path, near.mirrored


def _both_ways(alike: Iterable[tuple[bytes, bytes]], described: Mapping[bytes, object]) -> Iterator[Pair]:
    for one, other in alike:
        if one in described and other in described:
            yield one, other, False
            yield one, other, True


def _link(sets: DisjointSets[bytes], pairs: PhotoPairs, found: Sequence[Pair], say: OnProgress) -> None:
    """Link the pairs that are the same photograph; those linked through others need no look."""

    def apart() -> Iterator[Pair]:
        for done, pair in enumerate(found, 1):
            say("verifying", done, len(found))
            if not sets.linked(pair[0], pair[1]):
                yield pair

    for (one, other, _), agreement in pairs.agreements(apart()):
        if agreement >= AGREEMENT:
            sets.link(one, other)
