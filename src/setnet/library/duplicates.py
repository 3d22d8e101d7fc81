"""Near-duplicates: copies of one photograph, resized, cropped, recompressed, recoloured or mirrored.

Each photo is described by a VLAD, near neighbours among these are compared in worker processes, and what
agrees is grouped. What a library knows of its photos saves work and finds more. Its VLADs, and how much pairs
agree, are kept by content, so that a second run looks only at what is new; the file can be made again from
the photos: where it cannot be read or written, a run takes longer, no more.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from setnet.addresses import is_external
from setnet.durable import transaction
from setnet.errors import SetNetError, StorageError, WorkerError
from setnet.heads import unit
from setnet.library.clustering import OnProgress
from setnet.library.database import make_private
from setnet.library.folder_scan import FolderScan
from setnet.library.neighbours import nearest_neighbours
from setnet.library.paths import VLADS, as_path, display_path, resolve_path
from setnet.library.photo_catalog import KnownFile
from setnet.library.photos import HASH_BYTES
from setnet.library.vlad import SHIPPED, VLAD_DIM, Floats
from setnet.sandbox import Limits, Message, Service, WorkerPool, unordered_map
from setnet.sandbox.messages import invalid_reply
from setnet.system import usable_cores

if TYPE_CHECKING:
    from setnet.library.library import Library

T = TypeVar("T", bound=Hashable)


class DisjointSets(Generic[T]):
    """Sets that grow together, link by link.

    Examples
    --------
    >>> sets = DisjointSets[str]()
    >>> sets.link("a", "b"), sets.link("c", "d"), sets.link("b", "d"), sets.link("a", "c")
    (True, True, True, False)
    >>> sets.groups()
    [['a', 'b', 'c', 'd']]
    """

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def link(self, one: T, other: T) -> bool:
        """Unite the sets of two things; return whether they were apart."""
        first, second = self._root(one), self._root(other)
        self._parent[second] = first
        return first != second

    def linked(self, one: T, other: T) -> bool:
        """Tell whether two things are in one set."""
        return self._root(one) == self._root(other)

    def groups(self) -> list[list[T]]:
        """Return the sets, and the things in each, in the order in which they were first named."""
        found: dict[T, list[T]] = {}
        for thing in list(self._parent):
            found.setdefault(self._root(thing), []).append(thing)
        return list(found.values())

    def _root(self, thing: T) -> T:
        parent = self._parent.setdefault(thing, thing)
        while parent != thing:
            self._parent[thing] = self._parent[parent]  # halves the way for the next search
            thing, parent = parent, self._parent[parent]
        return thing


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
class DescribedPhoto:
    """A photo file with its content's hash, its size in pixels and its VLADs, as it is and mirrored."""

    path: bytes
    hash: bytes
    pixels: int
    vlads: Floats


_TABLES = {
    "vlads": "hash BLOB PRIMARY KEY, pixels INTEGER NOT NULL, vlads BLOB NOT NULL",
    "pairs": "one BLOB, other BLOB, mirrored INTEGER, agreement REAL, PRIMARY KEY (one, other, mirrored)",
}
_DISK_ERRORS = OSError, sqlite3.Error, StorageError  # a disk that is full, failing or another user's

_Rows = dict[bytes, tuple[int, Floats]]
Contents = tuple[bytes, bytes, bool]  # of two photos, in order, one of them maybe mirrored


class PhotoCache:
    """What is computed from photos, by the hash of their content, in a database that is open during a run.

    Parameters
    ----------
    path
        The file; made where there is none.
    contents
        Hashes of the contents that the library has: rows of others are deleted.
    """

    def __init__(self, path: Path, contents: Collection[bytes]) -> None:
        self.known: _Rows = {}
        self.agreements: dict[Contents, float] = {}
        self._db: sqlite3.Connection | None = None
        with suppress(*_DISK_ERRORS):
            self._db, rows = _open_cache(path)
            with transaction(self._db):
                others = rows.keys() - set(contents)
                for statement in (
                    "DELETE FROM vlads WHERE hash = ?1",
                    "DELETE FROM pairs WHERE one = ?1 OR other = ?1",
                ):
                    self._db.executemany(statement, ((key,) for key in others))
            self.known = {key: row for key, row in rows.items() if key not in others}
            self.agreements = {
                (one, other, bool(mirrored)): agreement
                for one, other, mirrored, agreement in self._db.execute("SELECT * FROM pairs")
                if isinstance(agreement, float)
            }

    def store(self, photos: Iterable[DescribedPhoto]) -> None:
        """Keep the VLADs of photos; a disk that refuses costs time later, and nothing now."""
        rows = [(photo.hash, photo.pixels, photo.vlads.astype("<f4").tobytes()) for photo in photos]
        if self._db is not None:
            with suppress(*_DISK_ERRORS), transaction(self._db):
                self._db.executemany("INSERT OR REPLACE INTO vlads VALUES (?, ?, ?)", rows)

    def store_pairs(self, pairs: Mapping[Contents, float]) -> None:
        """Keep how much pairs of photos agree."""
        if self._db is not None:
            with suppress(*_DISK_ERRORS), transaction(self._db):
                rows = [(*contents, agreement) for contents, agreement in pairs.items()]
                self._db.executemany("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None


def _open_cache(path: Path) -> tuple[sqlite3.Connection, _Rows]:
    """Return the database and its rows; one that is damaged, or of another vocabulary, is made again."""
    shipped = zlib.crc32(files(__package__).joinpath(SHIPPED).read_bytes()) >> 1  # fits a signed number
    for _ in range(2):
        make_private(path)
        db = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        try:
            if db.execute("PRAGMA user_version").fetchone()[0] != shipped:
                with transaction(db):
                    for table, columns in _TABLES.items():
                        db.execute(f"DROP TABLE IF EXISTS {table}")
                        db.execute(f"CREATE TABLE {table} ({columns}) WITHOUT ROWID")
                    db.execute(f"PRAGMA user_version = {shipped}")
            return db, _cached_rows(db)
        except sqlite3.DatabaseError as error:
            db.close()
            if isinstance(error, sqlite3.OperationalError):  # locked, read-only, full: it may be sound
                raise
            path.unlink()
    raise sqlite3.DatabaseError(f"{path} cannot be made")


def _cached_rows(db: sqlite3.Connection) -> _Rows:
    """Return the rows that make sense."""
    found: _Rows = {}
    for key, pixels, data in db.execute("SELECT hash, pixels, vlads FROM vlads"):
        if isinstance(data, bytes) and len(data) == 8 * VLAD_DIM and isinstance(pixels, int):
            vlads = np.frombuffer(data, "<f4").reshape(2, VLAD_DIM)
            if np.isfinite(vlads).all():
                found[key] = pixels, vlads
    return found


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

    def told(done: int, total: int) -> None:
        if progress is not None:
            progress("comparing", done, total)

    near = nearest_neighbours(
        both, _MAX_NEIGHBOURS, FLOOR, exact=_EXACT_PHOTOS, probes=_PROBES, progress=told
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

    def described(self, paths: Iterable[bytes]) -> Iterator[DescribedPhoto | None]:
        """Yield each photo with its VLADs; None stands for one that could not be read."""
        results = unordered_map(self._describe, paths, self._pool.capacity)
        for path, result in results:
            if isinstance(result, str):
                self._on_failure(path, result)
            yield result if isinstance(result, DescribedPhoto) else None

    def _describe(self, path: bytes) -> tuple[bytes, DescribedPhoto | str]:
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


def _photo_from(path: bytes, reply: Message) -> DescribedPhoto | str:
    if reply.fields.get("reason") is not None:
        return reply.text("reason")
    content = reply.data("hash")
    vlads = reply.array("vlads", np.float32, 2, VLAD_DIM)
    if len(content) != HASH_BYTES:
        raise invalid_reply("a wrong hash")
    return DescribedPhoto(path, content, reply.integer("pixels", 1, _MAX_PIXELS), vlads)


AGREEMENT = 0.55  # share of pieces that must be the same: halfway on LFW's training half
_BATCH = 256  # photos that are stored together

OnFailure = Callable[[Path, str], None]


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
    scan = FolderScan(sorted({resolve_path(photo) for photo in photos}))
    paths = _files(file.path for file in scan.files())
    for path, reason in scan.unreadable:
        if on_failure is not None:
            on_failure(as_path(path), reason)
    return group_duplicates(paths, workers=workers, progress=progress, on_failure=on_failure, limits=limits)


def group_duplicates(
    paths: Sequence[bytes],
    *,
    known: Mapping[bytes, DescribedPhoto] | None = None,
    alike: Iterable[tuple[bytes, bytes]] = (),
    cache: PhotoCache | None = None,
    workers: int | None = None,
    progress: OnProgress | None = None,
    on_failure: OnFailure | None = None,
    limits: Limits | None = None,
) -> list[DuplicateGroup]:
    """Return the groups among photos, given as sorted absolute paths; the options are `find_duplicates`'.

    Photos that are `known` need not be read again, pairs that are `alike` are compared too, both ways round,
    and the `cache` keeps what is computed.
    """

    def failed(path: bytes, reason: str) -> None:
        if on_failure is not None:
            on_failure(as_path(path), reason)

    say = progress or (lambda stage, done, total: None)
    described = dict(known or {})
    unread = [path for path in paths if path not in described]
    count = min(usable_cores() if workers is None else workers, len(paths))
    with PhotoPairs(count, failed, limits) as reader:
        _describe(reader, unread, described, say, cache)
        photos = [described[path] for path in paths if path in described]
        sets = _same_content(photos)
        found = dict.fromkeys([*_near(photos, say), *_both_ways(alike, described)])
        _link(sets, reader, _by_component(found), {p.path: p.hash for p in photos}, cache, say)
    pixels = {photo.path: photo.pixels for photo in photos}
    groups = [
        DuplicateGroup.of({as_path(path): pixels[path] for path in group})
        for group in sets.groups()
        if len(group) > 1
    ]
    return sorted(groups, key=lambda group: group.photos[0])


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
    cache: PhotoCache | None,
) -> None:
    """Add the photos of these paths to those `described`."""
    batch: list[DescribedPhoto] = []
    try:
        for done, photo in enumerate(pairs.described(paths), 1):
            if photo is not None:
                described[photo.path] = photo
                batch.append(photo)
            if len(batch) >= _BATCH and cache is not None:
                cache.store(batch)
                batch = []
            say("reading", done, len(paths))
    finally:  # also after Ctrl-C: what was read is kept
        if cache is not None:
            cache.store(batch)


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
        for near in find_candidates(vlads, progress=say):
            yield different[near.one].path, different[near.other].path, near.mirrored


def _both_ways(alike: Iterable[tuple[bytes, bytes]], described: Mapping[bytes, object]) -> Iterator[Pair]:
    for one, other in alike:
        if one in described and other in described:
            yield one, other, False
            yield one, other, True


def _by_component(pairs: Collection[Pair]) -> list[Pair]:
    """Return pairs with those next to each other that share photos, directly or through others."""
    sets = DisjointSets[bytes]()
    for one, other, _ in pairs:
        sets.link(one, other)
    place = {path: number for number, group in enumerate(sets.groups()) for path in group}
    return sorted(pairs, key=lambda pair: place[pair[0]])


def _link(
    sets: DisjointSets[bytes],
    reader: PhotoPairs,
    found: Sequence[Pair],
    content: Mapping[bytes, bytes],
    cache: PhotoCache | None,
    say: OnProgress,
) -> None:
    """Link the pairs that are the same photograph; those linked through others need no look."""
    known = {} if cache is None else cache.agreements
    new: dict[Contents, float] = {}

    def contents(pair: Pair) -> Contents:
        one, other = sorted((content[pair[0]], content[pair[1]]))
        return one, other, pair[2]

    def apart() -> Iterator[Pair]:
        for done, pair in enumerate(found, 1):
            say("verifying", done, len(found))
            if known.get(contents(pair), 0.0) >= AGREEMENT:
                sets.link(pair[0], pair[1])
            elif contents(pair) not in known and not sets.linked(pair[0], pair[1]):
                yield pair

    try:
        for pair, agreement in reader.agreements(apart()):
            if agreement is not None:
                new[contents(pair)] = agreement
            if (agreement or 0.0) >= AGREEMENT:
                sets.link(pair[0], pair[1])
    finally:  # also after Ctrl-C: what was compared is kept
        if cache is not None:
            cache.store_pairs(new)


SAME_FACE = 0.90  # similarity from which two faces may be one face in two copies of a photo
_MAX_FACES = 8  # such faces of a face
_EXACT_FACES = 20_000  # faces up to which all are compared with all


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
        for path, file in library.photos.known_files().items()
        if file.state == "ready" and not file.is_video and not is_external(path)
    }
    contents = {file.hash for file in files.values() if file.hash is not None}
    cache = PhotoCache(library.path / VLADS, contents)
    try:
        return group_duplicates(
            sorted(files),
            known=dict(_known(files, cache)),
            alike=_with_the_same_face(library, progress),
            cache=cache,
            workers=workers,
            progress=progress,
            on_failure=on_failure,
            limits=limits,
        )
    finally:
        cache.close()


def _known(files: dict[bytes, KnownFile], cache: PhotoCache) -> Iterator[tuple[bytes, DescribedPhoto]]:
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
    for photo in library.photos.all_photos():
        if photo.faces and photo.kind == "photo":
            found = library.photos.descriptors(photo.id)
            rows.append(found)
            owners += [photo.stored_path] * len(found)
    if not rows:
        return []

    def told(done: int, total: int) -> None:
        if progress is not None:
            progress("comparing faces", done, total)

    near = nearest_neighbours(
        unit(np.concatenate(rows)), _MAX_FACES, SAME_FACE, exact=_EXACT_FACES, progress=told
    )
    pairs = zip(near.row.tolist(), near.other.tolist(), strict=True)
    found_pairs = {tuple(sorted((owners[one], owners[other]))) for one, other in pairs}
    return sorted((one, other) for one, other in found_pairs if one != other)
