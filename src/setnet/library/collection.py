"""Photos and faces in a collection that many machines write, and from there in a library.

Each machine runs the same index run as for a library over its part of the files; nobody gives out work. The
items of the collection are photos and shots, named by their paths. Tables beside the segments have a row for
each photo and each face, with what a library knows of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from hashlib import blake2b
from importlib import import_module
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.addresses import is_address
from setnet.engine import Collection
from setnet.engine.manifest import (
    WHOLE,
    ListedFile,
    Share,
    is_in_part,
    living_rows,
    may_share,
    pyarrow,
)
from setnet.engine.writer import ID_LIMIT
from setnet.errors import InvalidInputError, MissingExtraError, ModelError, NotAnIndexError, StorageError
from setnet.library.creation import (
    check_bytes,
    check_settings,
    facts_about,
    index_options,
    model_fingerprint,
)
from setnet.library.folder_scan import FoundFile, check_patterns, is_photo_name, is_video_name
from setnet.library.index_run import IndexReport, IndexRun, RunOptions
from setnet.library.paths import display_path, existing_paths, is_below, resolve_path, source_file
from setnet.library.photo_catalog import KnownFile
from setnet.library.photo_reader import PhotoResult, PhotoTask
from setnet.library.photo_writer import index_attributes
from setnet.library.photos import HASH_BYTES, StoredFace

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.index_run import AgreeToPrune, Progress
    from setnet.sandbox import Limits

_BATCH, _BATCH_SECONDS = 2048, 120.0  # photos in a segment, and what a killed run loses at most
_CHUNK = 4096  # rows in memory at once
_LANDMARKS = 40  # bytes
_COLUMNS = {
    "items": {
        **dict.fromkeys(("root", "path", "hash", "video", "sprite"), "binary"),
        **dict.fromkeys(("size", "mtime_ns", "width", "height", "colour"), "int64"),
        **dict.fromkeys(("taken", "start", "stop", "best"), "double"),
        **dict.fromkeys(("id", "taken_from", "reason", "note"), "string"),
    },
    "elements": {
        **dict.fromkeys(("x0", "y0", "x1", "y1", "score", "at", "seen"), "double"),
        **dict.fromkeys(("stored_landmarks", "stored_track"), "binary"),
        "item": "string",
        "ordinal": "int32",
        "stored_quality": "string",
    },
}
_NEEDED = ("root", "path", "size", "mtime_ns")
_FACTS = [name for name in _COLUMNS["items"] if name not in ("id", "root")]  # of a `PhotoResult`


def item_id(path: bytes) -> str:
    """Return what a photo or shot is called in a collection: its path, the end of a long one as a hash."""
    text = display_path(path)
    if len(text.encode()) <= ID_LIMIT:
        return text
    digest = blake2b(path, digest_size=HASH_BYTES).hexdigest()
    return f"{text.encode()[: ID_LIMIT - 2 * HASH_BYTES - 1].decode(errors='ignore')}-{digest}"


class CollectionPart:
    """A part of a collection as an index run writes it, whose `catalog` is the part itself."""

    def __init__(self, collection: Collection, part: Share, roots: Sequence[bytes]) -> None:
        self.catalog = self
        self._collection, self._part, self._roots = collection, part, roots
        self.left_out = [] if is_address(collection.address) else [resolve_path(collection.address)]
        self._ids: list[str] = []
        self._known: dict[bytes, KnownFile] = {}
        self._pending: dict[str, PhotoResult] = {}
        self._since = monotonic()

    def known_files(self) -> dict[bytes, KnownFile]:
        """Return the files of this part that the collection has."""
        for listed in self._collection.manifest.segments:
            if not listed.tables or not may_share(listed.part, self._part):
                continue
            columns = ["id", "path", "size", "mtime_ns", "hash", "video", "start", "reason"]
            table = self._collection.table(listed, "items", columns).take(living_rows(listed))
            for row in (row for batch in table.to_batches(_CHUNK) for row in batch.to_pylist()):
                file = source_file(row["path"], row["start"])
                if is_in_part(file, self._part):
                    before = self._known.get(file)
                    ids = (*(before.ids if before else ()), len(self._ids))
                    state = "ready" if row["reason"] is None else "failed"
                    content = row["hash"] if row["start"] is None else row["video"]
                    self._known[file] = KnownFile(
                        ids, row["size"], row["mtime_ns"], content, state, row["start"] is not None
                    )
                    self._ids.append(row["id"])
        return self._known

    def store(self, results: Sequence[PhotoResult]) -> None:
        """Keep what was found until there is enough of it for a segment, or for two minutes."""
        self._pending.update((item_id(result.path), result) for result in results)
        if len(self._pending) >= _BATCH or monotonic() - self._since > _BATCH_SECONDS:
            self.tidy()

    def tidy(self) -> None:
        """Write what was found, and merge segments of this part."""
        self._since = monotonic()
        if not self._pending:
            return
        results = list(self._pending.values())
        files = {result.file for result in results} & self._known.keys()
        before = {self._ids[i] for file in files for i in self._known[file].ids}
        found = [result.descriptors for result in results if result.descriptors is not None]
        dim = self._collection.manifest.settings.shape.dim
        self._collection.add(
            list(self._pending),
            np.concatenate([np.zeros((0, dim), np.float32), *found]),
            [len(result.faces) for result in results],
            [
                index_attributes(r.file, r.taken, len(r.faces), r.start) if r.reason is None else None
                for r in results
            ],
            part=self._part,
            without=sorted(before - self._pending.keys()),  # shots that are no more
            tables=self._tables(),
        )
        self._pending.clear()
        self._collection.merge_small(self._part)

    def _tables(self) -> list[Any]:
        arrow, _ = pyarrow()
        photos, faces = [], []
        for name, result in self._pending.items():
            root = next((root for root in self._roots if is_below(result.file, root)), result.file)
            facts = {fact: getattr(result, fact) for fact in _FACTS}
            photos.append({"id": name, "root": root} | facts)
            faces += [{"item": name} | face._asdict() for face in result.faces]
        return [
            arrow.Table.from_pylist(rows, schema=arrow.schema(list(columns.items())))
            for rows, columns in zip((photos, faces), _COLUMNS.values(), strict=True)
        ]

    def remove(self, ids: Sequence[int]) -> None:
        """Remove photos from the collection."""
        self._collection.delete([self._ids[i] for i in ids], self._part)

    def recover(self) -> None:
        """Do nothing: no change of a collection is ever half done."""

    def touch(self, files: Sequence[tuple[int, PhotoResult]]) -> None:
        """Do nothing, since files whose time has changed are read again."""

    def folders(self) -> list[bytes]:
        """Return no folders: a collection has those of all its writers."""
        return []

    def same_content(self, content_hash: bytes) -> list[tuple[tuple[int, ...], bytes]]:
        """Return no files: a copy is read like any other."""
        return []

    def copy_faces(self, photo_id: int, result: PhotoResult) -> PhotoResult:
        """Return the result, which has its own faces."""
        return result


def settings_in(about: Mapping[str, Any], address: str | Path) -> FaceSettings:
    """Return how the faces of a collection were found, by what is stored about it.

    It is an error if this machine has not the same model.
    """
    from setnet.faces import FaceSettings

    try:
        settings = FaceSettings.from_dict(json.loads(about["settings"]))
        if about["model"] != model_fingerprint(settings):
            raise ModelError(
                f"the model {settings.descriptor!r} on this machine is not the one that made {address}: "
                "descriptors of two models or metrics do not compare. Put the same model file here, or use "
                "another collection"
            )
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError):
        raise InvalidInputError(f"{address} is a collection of something else than photos") from None
    return settings


def open_collection(
    address: str | Path, bytes_per_photo: int | None, chosen: Mapping[str, Any]
) -> tuple[Collection, FaceSettings]:
    """Open a collection of photos that has the face settings `chosen`, or create it with these."""
    from setnet.faces import FaceSettings, model_entry, model_paths

    pyarrow()
    try:
        collection = Collection(address)
    except NotAnIndexError:
        settings = FaceSettings(**chosen)
        entry = model_entry(settings.descriptor, "descriptor")
        assert entry.dim is not None
        collection = Collection.create(
            address,
            entry.dim,
            about=facts_about(settings, entry.dim, bytes_per_photo),
            **index_options(settings, entry.dim, bytes_per_photo),
        )
    settings = settings_in(collection.manifest.about, address)
    check_settings(settings, chosen, address, collection=True)
    check_bytes(collection.manifest.settings.shape.bytes_per_item, bytes_per_photo, address)
    for name, kind in ((settings.detector, "detector"), (settings.descriptor, "descriptor")):
        model_paths(model_entry(name, kind))
    return collection, settings


def index_into(
    address: str | Path,
    photos: Sequence[str | os.PathLike[str]],
    part: Share = WHOLE,
    *,
    workers: int | None = None,
    prune: bool | AgreeToPrune = False,
    retry: bool = False,
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
    limits: Limits | None = None,
    bytes_per_photo: int | None = None,
    **chosen: Any,
) -> IndexReport:
    """Find the faces in a part of the photos and keep them in a collection.

    Any number of machines do this at the same time, each with its part. A part that was begun goes on where
    it was stopped; what is done is not done again, also when the number of parts has changed.

    Parameters
    ----------
    address
        The collection: a folder, or an address such as ``s3://bucket/faces``. It is made if there is none.
    photos
        Folders or single photos, at the same paths or addresses on all machines.
    part
        Which share of the files: ``(1, 8)`` is the first of eight.
    workers, prune, retry, exclude, progress, should_stop, limits
        As for `Library.index`.
    bytes_per_photo
        As for `Library.create`.
    **chosen
        Face settings, such as ``descriptor``; those of the collection by default.
    """
    options = RunOptions(workers, prune, retry, progress, should_stop, limits, part)
    roots = existing_paths(photos)
    collection, settings = open_collection(address, bytes_per_photo, chosen)
    writer = CollectionPart(collection, part, roots)
    try:
        return IndexRun(writer, settings, options, check_patterns(exclude)).run(roots)
    finally:
        writer.tidy()


def index_with_dask(
    scheduler: str, address: str | Path, photos: Sequence[str | os.PathLike[str]], **options: Any
) -> IndexReport:
    """Find the faces in photos as tasks of a Dask cluster, four for each of its threads.

    `options` are those of `index_into` that are no functions. Dask spreads the tasks and repeats those whose
    machine is lost; a task goes on where the one before it ended.
    """
    try:
        distributed = import_module("distributed")
    except ModuleNotFoundError as error:
        raise MissingExtraError("--dask", error.name, "dask") from None
    faces = {"detector", "descriptor", "min_face"} & options.keys()
    # What is wrong is said before the work.
    open_collection(address, options.get("bytes_per_photo"), {name: options[name] for name in faces})
    paths = [os.fspath(photo) for photo in photos]
    run = partial(index_into, workers=1, **options)
    with distributed.Client(scheduler) as client:
        parts = max(1, 4 * sum(client.nthreads().values()))
        tasks = [
            client.submit(run, os.fspath(address), paths, (i, parts), pure=False) for i in range(1, parts + 1)
        ]
        reports: list[IndexReport] = client.gather(tasks)
    return joined_report(reports)


def joined_report(reports: Sequence[IndexReport]) -> IndexReport:
    """Return one report of several parts."""
    joined: dict[str, Any] = {}
    for name, first in asdict(reports[0]).items():
        values = [getattr(report, name) for report in reports]
        if isinstance(first, tuple):
            joined[name] = tuple(dict.fromkeys(value for own in values for value in own))
        elif name == "seconds":
            joined[name] = max(values)
        else:
            joined[name] = any(values) if isinstance(first, bool) else sum(values)
    return IndexReport(**joined)


class CollectedPhotos:
    """The photos of a collection, as an index run reads them in place of files.

    Attributes
    ----------
    settings
        How their faces were found.
    roots
        The folders and addresses that were indexed into the collection.
    bytes_per_photo
        In how many bytes the descriptors of a photo are kept; 0 for floats.
    """

    video_seconds = 0.0

    def __init__(self, address: str | Path) -> None:
        self.address = os.fspath(address)
        self._collection = Collection(address)
        self.settings = settings_in(self._collection.manifest.about, address)
        self.bytes_per_photo = self._collection.manifest.settings.shape.bytes_per_item
        self._listed = [f for f in self._collection.manifest.segments if f.tables]
        self.unreadable: list[tuple[bytes, str]] = []
        self.skipped: list[tuple[bytes, str]] = []
        self.roots = sorted({row["root"] for f in self._listed for row in self._rows(f, ["root"])})

    def _rows(self, listed: ListedFile, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield what the tables say of the photos of a segment that are not deleted."""
        arrow, _ = pyarrow()
        table = self._collection.table(listed, "items", columns)
        try:
            kinds = arrow.schema([(name, _COLUMNS["items"][name]) for name in columns])
            table = table.select(columns).cast(kinds).take(living_rows(listed))
            if any(table.column(name).null_count for name in columns if name in _NEEDED):
                raise ValueError("a photo without a path")
        except (arrow.ArrowException, ValueError, KeyError) as error:
            raise StorageError(f"{self.address}: the tables are not those of photos: {error}") from None
        for batch in table.to_batches(_CHUNK):
            yield from batch.to_pylist()

    def files(self) -> Iterator[FoundFile]:
        """Yield the files that the collection has."""
        columns = ["path", "start", "size", "mtime_ns"]
        seen = set[bytes]()
        for listed in self._listed:
            for row in self._rows(listed, columns):
                file = source_file(row["path"], row["start"])
                name = os.path.basename(file)
                if file not in seen and (is_photo_name(name) or is_video_name(name)):
                    yield FoundFile(file, row["size"], row["mtime_ns"])
                seen.add(file)

    def results(
        self, tasks: Iterable[PhotoTask], should_stop: Callable[[], bool] | None = None
    ) -> Iterator[PhotoResult]:
        """Yield what the collection has of some files."""
        wanted = {task.path for task in tasks}
        for listed in self._listed:
            for file, own in groupby(self._results_in(listed, wanted), lambda result: result.file):
                shots = list(own)
                if shots[0].start is None:
                    yield from shots
                else:
                    whole = PhotoResult(file, shots[0].size, shots[0].mtime_ns, shots[0].video)
                    yield replace(whole, shots=tuple(shots))

    def _results_in(self, listed: ListedFile, wanted: set[bytes]) -> Iterator[PhotoResult]:
        segment, faces = None, None
        for row, facts in zip(living_rows(listed).tolist(), self._rows(listed, _FACTS), strict=True):
            if source_file(facts["path"], facts["start"]) not in wanted:
                continue
            if segment is None or faces is None:
                segment = self._collection.open_segment(listed)
                faces = self._collection.table(listed, "elements", [*_COLUMNS["elements"]])
            first, count = int(segment.offsets[row]), int(segment.counts[row])
            try:
                own = [StoredFace(**face) for face in faces.slice(first, count).drop("item").to_pylist()]
                _check_facts(facts, own)
            except (TypeError, ValueError, KeyError) as error:
                raise StorageError(f"{self.address}: what it says of a photo is damaged: {error}") from None
            vectors = segment.elements_of(np.array([row])).astype(np.float32) if count else None
            yield PhotoResult(**facts, faces=tuple(own), descriptors=vectors)


def _check_facts(facts: Mapping[str, Any], faces: Sequence[StoredFace]) -> None:
    """Raise `ValueError` for what an index run cannot have found."""
    if facts["reason"] is None and len(facts["hash"] or b"") != HASH_BYTES:
        raise ValueError(f"{facts['path']!r} has no hash")
    for place, face in enumerate(faces):
        if (
            face.ordinal != place
            or len(face.stored_landmarks) != _LANDMARKS
            or not np.isfinite(face.box).all()
        ):
            raise ValueError(f"face {place} of {facts['path']!r}")
        json.loads(face.stored_quality)
