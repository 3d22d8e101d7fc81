"""Near-duplicates: copies of one photograph, resized, cropped, recompressed, recoloured or mirrored.

Each photo is described by a VLAD, near neighbours among these are compared in worker processes, and what
agrees is grouped. A library's VLADs, and how much pairs agree, are kept by content, so that a second run
looks only at what is new; the file can be made again from the photos: where it cannot be read or written, a
run takes longer, no more.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from setnet.addresses import is_external
from setnet.errors import InvalidInputError, SetNetError, StorageError, WorkerError
from setnet.library.clustering import OnProgress
from setnet.library.descriptor_files import read_arrays, write_arrays
from setnet.library.folder_scan import FolderScan
from setnet.library.neighbours import nearest_neighbours
from setnet.library.paths import VLADS, as_path, display_path, resolve_path
from setnet.library.photo_catalog import KnownFile
from setnet.library.photos import HASH_BYTES
from setnet.library.stacks import DisjointSets
from setnet.library.vlad import SHIPPED, VLAD_DIM, Floats
from setnet.sandbox import Limits, Message, Service, WorkerPool, unordered_map
from setnet.sandbox.messages import invalid_reply
from setnet.system import usable_cores

if TYPE_CHECKING:
    from setnet.library.library import Library


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Two or more copies of one photograph.

    Attributes
    ----------
    photos
        The largest first; of equally large ones in the order of paths.
    pixels
        How many pixels each of them has.
    """

    photos: tuple[Path, ...]
    pixels: tuple[int, ...]

    @classmethod
    def of(cls, pixels: dict[Path, int]) -> DuplicateGroup:
        """Return the group of these photos, given with their numbers of pixels."""
        ordered = sorted(pixels, key=lambda path: (-pixels[path], path))
        return cls(tuple(ordered), tuple(pixels[path] for path in ordered))


@dataclass(frozen=True, slots=True, eq=False)
class PhotoVlads:
    """A photo file with its content's hash, its size in pixels and its VLADs, as it is and mirrored."""

    path: bytes
    hash: bytes
    pixels: int
    vlads: Floats


Contents = tuple[bytes, bytes, bool]  # hashes of two photos, in order, one of them maybe mirrored


class PhotoCache:
    """What is computed from photos, by the hash of their content: pixels and VLADs, and how much pairs agree.

    A file that is damaged, or was made with another vocabulary, counts as empty.
    """

    def __init__(self) -> None:
        self.photos: dict[bytes, tuple[int, Floats]] = {}
        self.agreements: dict[Contents, float] = {}

    @classmethod
    def read(cls, path: Path, contents: Collection[bytes]) -> PhotoCache:
        """Return what a file has of photos with these contents."""
        found = cls()
        with suppress(InvalidInputError):
            arrays = read_arrays(path, _ARRAYS)
            made_by, hashes, pixels, vlads, pairs, agreements = arrays
            n, m = hashes.shape[:1], pairs.shape[:1]
            shapes = [(), (*n, HASH_BYTES), n, (*n, 2, VLAD_DIM), (*m, 2, HASH_BYTES), (*m, 2)]
            if [a.shape for a in arrays] != shapes or "".join(a.dtype.kind for a in arrays) != "iuifuf":
                return found
            if made_by != _vocabulary() or not np.isfinite(vlads).all():
                return found
            rows = zip(map(bytes, hashes), pixels.tolist(), vlads.astype(np.float32), strict=True)
            found.photos = {content: (size, both) for content, size, both in rows if content in contents}
            for (one, other), (mirrored, agreement) in zip(pairs, agreements.tolist(), strict=True):
                if {one.tobytes(), other.tobytes()} <= found.photos.keys():
                    found.agreements[one.tobytes(), other.tobytes(), bool(mirrored)] = agreement
        return found

    def write(self, path: Path) -> None:
        """Keep it in a file; a disk that refuses costs time later, and nothing now."""
        both = [content for one, other, _ in self.agreements for content in (one, other)]
        rows = [(mirrored, agreement) for (_, _, mirrored), agreement in self.agreements.items()]
        arrays: tuple[NDArray[Any], ...] = (
            np.array(_vocabulary()),
            np.frombuffer(b"".join(self.photos), np.uint8).reshape(-1, HASH_BYTES),
            np.array([pixels for pixels, _ in self.photos.values()], np.int64),
            np.array([vlads for _, vlads in self.photos.values()], np.float32).reshape(-1, 2, VLAD_DIM),
            np.frombuffer(b"".join(both), np.uint8).reshape(-1, 2, HASH_BYTES),
            np.array(rows, np.float64).reshape(-1, 2),
        )
        with suppress(StorageError):
            write_arrays(path, **dict(zip(_ARRAYS, arrays, strict=True)))


_ARRAYS = ("vocabulary", "hashes", "pixels", "vlads", "pairs", "agreements")


def _vocabulary() -> int:
    """Return what tells the shipped vocabulary from others."""
    return zlib.crc32(files(__package__).joinpath(SHIPPED).read_bytes())


FLOOR = 0.35  # similarity of VLADs: on LFW's training half no copy is below, and few other photos above
_MAX_NEIGHBOURS = 16  # neighbours of a photo that are looked at
_EXACT_PHOTOS = 20_000  # vectors up to which comparing all with all takes seconds
_PROBES = 96  # cells of a few hundred vectors that each cell is compared with


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """Two photos, by number, the second maybe mirrored; sorts by similarity, the most similar first."""

    distance: float
    one: int
    other: int
    mirrored: bool


def find_candidates(vlads: Floats, progress: OnProgress | None = None) -> list[Candidate]:
    """Return the pairs of photos whose (n, 2, dim) VLADs are near each other, the most similar first."""
    count = len(vlads)
    both = np.ascontiguousarray(vlads.swapaxes(0, 1).reshape(2 * count, -1))  # photos, then mirrored ones
    near = nearest_neighbours(
        both,
        _MAX_NEIGHBOURS,
        FLOOR,
        exact=_EXACT_PHOTOS,
        probes=_PROBES,
        progress=progress and partial(progress, "comparing"),
    )
    found: dict[tuple[int, int, bool], float] = {}
    entries = zip(near.row.tolist(), near.other.tolist(), near.similarity.tolist(), strict=True)
    for row, other, similarity in entries:
        one, two = sorted((row % count, other % count))
        if one != two:  # a symmetrical photo is its own mirror image
            pair = one, two, (row < count) != (other < count)
            found[pair] = max(similarity, found.get(pair, FLOOR))
    return sorted(Candidate(-similarity, *pair) for pair, similarity in found.items())


_MAX_PIXELS = 1 << 50

Pair = tuple[bytes, bytes, bool]  # two photos, the second maybe mirrored
OnUnreadable = Callable[[bytes, str], None]


class PhotoPairs:
    """Reads photo files and yields results as they come, in no fixed order.

    Parameters
    ----------
    workers
        Number of processes; 0 works in this process (no protection against a crash).
    on_failure
        Called with the path of each photo that could not be read, and the reason.
    limits
        Time and memory that one photo, or pair, may take.
    """

    def __init__(self, workers: int, on_failure: OnUnreadable, limits: Limits | None = None) -> None:
        self._pool = WorkerPool(Service("setnet.library.registration"), workers, limits, ahead=1)
        self._on_failure = on_failure

    def __enter__(self) -> PhotoPairs:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def described(self, paths: Iterable[bytes]) -> Iterator[PhotoVlads | None]:
        """Yield each photo with its VLADs; None stands for one that could not be read."""
        results = unordered_map(self._describe, paths, self._pool.capacity)
        for path, result in results:
            if isinstance(result, str):
                self._on_failure(path, result)
            yield result if isinstance(result, PhotoVlads) else None

    def _describe(self, path: bytes) -> tuple[bytes, PhotoVlads | str]:
        task = Message("describe", {"path": os.fsdecode(path)})
        try:
            return path, self._pool.call(task, lambda reply: _photo_from(path, reply))
        except WorkerError as error:
            return path, str(error)

    def agreements(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, float | None]]:
        """Yield each pair of photos with how much of them is the same.

        None stands for a pair that can no longer be compared, as when a file has gone.
        """
        return unordered_map(self._compare, pairs, self._pool.capacity)

    def _compare(self, pair: Pair) -> tuple[Pair, float | None]:
        one, other, mirrored = pair
        fields = {"one": os.fsdecode(one), "other": os.fsdecode(other), "mirrored": mirrored}
        try:
            return pair, self._pool.call(
                Message("compare", fields), lambda reply: reply.number("agreement", 0.0, 1.0)
            )
        except SetNetError as error:
            self._on_failure(one, f"could not be compared with {display_path(other)}: {error}")
            return pair, None


def _photo_from(path: bytes, reply: Message) -> PhotoVlads | str:
    if reply.fields.get("reason") is not None:
        return reply.text("reason")
    content = reply.data("hash")
    vlads = reply.array("vlads", np.float32, 2, VLAD_DIM)
    if len(content) != HASH_BYTES:
        raise invalid_reply("a wrong hash")
    return PhotoVlads(path, content, reply.integer("pixels", 1, _MAX_PIXELS), vlads)


AGREEMENT = 0.55  # share of pieces that must be the same: halfway on LFW's training half

OnFailure = Callable[[Path, str], None]


class DuplicateOptions(TypedDict, total=False):
    """How duplicates are looked for.

    Attributes
    ----------
    workers
        Worker processes, by default one per core; 0 works in this process.
    progress
        Called with what is being done, how much of it is, of how much.
    on_failure
        Called with each photo or folder that cannot be read, and why; the others are grouped.
    limits
        Time and memory that one photo may take.
    """

    workers: int | None
    progress: OnProgress
    on_failure: OnFailure
    limits: Limits


def find_duplicates(
    photos: Sequence[str | os.PathLike[str]], **options: Unpack[DuplicateOptions]
) -> list[DuplicateGroup]:
    """Return the groups of photos, or of photos in folders, that are copies of one photograph.

    Nothing is written or changed. Copies may be resized, cropped, recompressed, recoloured, written on or
    mirrored. Files with the same bytes are copies too, links to one file are not. The order of the photos
    does not matter. The options are those of `DuplicateOptions`.
    """
    scan = FolderScan(sorted({resolve_path(photo) for photo in photos}))
    paths = _files(file.path for file in scan.files())
    for path, reason in scan.unreadable:
        if "on_failure" in options:
            options["on_failure"](as_path(path), reason)
    return group_duplicates(paths, **options)


def group_duplicates(
    paths: Sequence[bytes],
    described: dict[bytes, PhotoVlads] | None = None,
    cache: PhotoCache | None = None,
    **options: Unpack[DuplicateOptions],
) -> list[DuplicateGroup]:
    """Return the groups among photos, given as sorted absolute paths.

    Photos that are `described` need not be read again, and the `cache` takes what is computed.
    """

    def failed(path: bytes, reason: str) -> None:
        if "on_failure" in options:
            options["on_failure"](as_path(path), reason)

    described, cache, workers = described or {}, cache or PhotoCache(), options.get("workers")
    say = options.get("progress") or (lambda stage, done, total: None)
    unread = [path for path in paths if path not in described]
    count = min(usable_cores() if workers is None else workers, len(paths))
    with PhotoPairs(count, failed, options.get("limits")) as reader:
        for done, photo in enumerate(reader.described(unread), 1):
            if photo is not None:
                described[photo.path] = photo
                cache.photos[photo.hash] = photo.pixels, photo.vlads
            say("reading", done, len(unread))
        copies: dict[bytes, list[PhotoVlads]] = {}  # files with the same bytes need no look
        for path in paths:
            if path in described:
                copies.setdefault(described[path].hash, []).append(described[path])
        sets = _link(reader, [photos[0] for photos in copies.values()], cache.agreements, say)
    linked = [[photo for content in group for photo in copies[content]] for group in sets.groups()]
    groups = [
        DuplicateGroup.of({as_path(photo.path): photo.pixels for photo in group})
        for group in linked
        if len(group) > 1
    ]
    return sorted(groups, key=lambda group: group.photos[0])


def _files(paths: Iterable[bytes]) -> list[bytes]:
    """Return sorted paths of different files: where one is a link to another, the other."""
    found: dict[bytes, bytes] = {}
    for path in sorted(paths, key=lambda path: (os.path.islink(path), path)):
        found.setdefault(os.path.realpath(path), path)
    return sorted(found.values())


def _link(
    reader: PhotoPairs,
    photos: Sequence[PhotoVlads],
    agreements: dict[Contents, float],
    say: OnProgress,
) -> DisjointSets[bytes]:
    """Return the contents of photos, those of one photograph linked; through others they need no look."""
    sets = DisjointSets[bytes]()
    for photo in photos:
        sets.link(photo.hash, photo.hash)
    near = find_candidates(np.stack([photo.vlads for photo in photos]), progress=say) if photos else []
    found = _by_component([(photos[n.one].path, photos[n.other].path, n.mirrored) for n in near])
    content = {photo.path: photo.hash for photo in photos}

    def contents(pair: Pair) -> Contents:
        one, other = sorted((content[pair[0]], content[pair[1]]))
        return one, other, pair[2]

    def unknown_pairs() -> Iterator[Pair]:
        for done, pair in enumerate(found, 1):
            key = contents(pair)
            say("verifying", done, len(found))
            if agreements.get(key, 0.0) >= AGREEMENT:
                sets.link(*key[:2])
            elif key not in agreements and not sets.linked(*key[:2]):
                yield pair

    for pair, agreement in reader.agreements(unknown_pairs()):
        if agreement is not None:
            key = contents(pair)
            agreements[key] = agreement
            if agreement >= AGREEMENT:
                sets.link(*key[:2])
    return sets


def _by_component(pairs: Collection[Pair]) -> list[Pair]:
    """Return pairs with those next to each other that share photos, directly or through others."""
    sets = DisjointSets[bytes]()
    for one, other, _ in pairs:
        sets.link(one, other)
    place = {path: number for number, group in enumerate(sets.groups()) for path in group}
    return sorted(pairs, key=lambda pair: place[pair[0]])


def library_duplicates(library: Library, **options: Unpack[DuplicateOptions]) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates among a library's photos."""
    files = {
        path: file
        for path, file in library.photos.known_files().items()
        if file.state == "ready" and not file.is_video and not is_external(path)
    }
    contents = {file.hash for file in files.values() if file.hash is not None}
    cache = PhotoCache.read(library.path / VLADS, contents)
    try:
        return group_duplicates(sorted(files), dict(_known(files, cache)), cache, **options)
    finally:  # also after Ctrl-C: what was computed is kept
        cache.write(library.path / VLADS)


def _known(files: dict[bytes, KnownFile], cache: PhotoCache) -> Iterator[tuple[bytes, PhotoVlads]]:
    """Yield the photos whose VLADs are kept and whose files are as they were when they were indexed."""
    for path, file in files.items():
        if file.hash in cache.photos and _is_unchanged(path, file):
            pixels, vlads = cache.photos[file.hash]
            yield path, PhotoVlads(path, file.hash, pixels, vlads)


def _is_unchanged(path: bytes, file: KnownFile) -> bool:
    try:
        info = os.stat(path)
    except OSError:
        return False
    return (info.st_size, info.st_mtime_ns) == (file.size, file.mtime_ns)
