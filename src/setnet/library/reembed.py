"""Describes all faces of a library again by another model: what was found, named and said about them stays.

Photos are read again, but nothing is looked for in them: the places of the faces are known. The new index
grows beside the old one, which answers all searches until the new one replaces it in one step.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from setnet.durable import storage_errors
from setnet.errors import InvalidInputError
from setnet.library.creation import facts_about, model_fingerprint, restrict_files
from setnet.library.index_run import IndexProgress
from setnet.library.paths import REDESCRIBED, as_path, display_path
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.reembed_state import (
    FaceDescriber,
    FaceRow,
    NewDescriptor,
    NewIndex,
    NewRows,
    PeopleFaces,
    ReembeddedPhoto,
    replace_state,
)
from setnet.system import usable_cores
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.index_run import AgreeToPrune, Progress
    from setnet.library.library import Library
    from setnet.library.photos import LibraryPhoto
    from setnet.sandbox import Limits


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """The end of a run; paths are absolute.

    Attributes
    ----------
    total
        Photos that have to be described.
    described, faces
        Photos described in this run, and their faces.
    kept
        Photos that an interrupted run before had described.
    removed
        Photos whose files are gone.
    failed
        Photos that could not be read, and why; `setnet index` looks at them again.
    examples_from_photos, examples_from_pictures
        Example faces of people, by where they were seen again.
    lost
        Example faces that were not: the person, and the photo they came from.
    is_done
        Whether there was nothing to do, as the library was described by this model before.
    """

    descriptor: str
    dim: int
    total: int = 0
    described: int = 0
    faces: int = 0
    kept: int = 0
    removed: int = 0
    failed: tuple[tuple[Path, str], ...] = ()
    examples_from_photos: int = 0
    examples_from_pictures: int = 0
    lost: tuple[tuple[str, Path | None], ...] = ()
    interrupted: bool = False
    is_done: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether every photo and every example was described and the run came to its end."""
        return not self.failed and not self.lost and not self.interrupted

    @property
    def summary(self) -> str:
        """The run in one sentence."""
        if self.is_done:
            return f"the library is described by {self.descriptor} already"
        photos, faces = pluralise(self.described, "photo"), pluralise(self.faces, "face")
        parts = [f"{photos} with {faces} described by {self.descriptor}"]
        if self.kept:
            parts.append(f"{self.kept:,} before")
        if self.removed:
            parts.append(f"{self.removed:,} removed")
        examples = self.examples_from_photos + self.examples_from_pictures
        if examples:
            parts.append(f"{examples:,} examples of people")
        return f"{', '.join(parts)}, in {self.seconds:.1f} s"

    def to_dict(self, path_text: Callable[[Path], str] = str) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return asdict(self) | {
            "failed": [{"photo": path_text(path), "reason": why} for path, why in self.failed],
            "lost": [
                {"person": person, "photo": None if path is None else path_text(path)}
                for person, path in self.lost
            ],
        }


_BATCH_PHOTOS = 256
_BATCH_SECONDS = 4.0
_MOST_SEGMENTS = 40  # the engine merges small segments itself; this is for what it left


def reembed(
    library: Library,
    descriptor: str | None = None,
    *,
    workers: int | None = None,
    prune: bool | AgreeToPrune = False,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
    limits: Limits | None = None,
) -> ReembedReport:
    """Describe all faces of a library anew; `setnet.library.Library.reembed` says what it means."""
    settings = replace(library.settings, descriptor=descriptor or library.settings.descriptor)
    with storage_errors(library.path), library.locked():
        if _is_described_by(library.photos, settings):
            shutil.rmtree(library.path / REDESCRIBED, ignore_errors=True)  # left by a kill at the very end
            return ReembedReport(settings.descriptor, library.dim, is_done=True)
        run = ReembedRun(
            library,
            settings,
            workers=usable_cores() if workers is None else workers,
            prune=prune,
            progress=progress,
            should_stop=should_stop,
            limits=limits,
        )
        report = run.over_all()
        restrict_files(library.path, group_readable=library.group_readable)
    return report


def _is_described_by(catalog: PhotoCatalog, settings: FaceSettings) -> bool:
    """Tell whether the descriptors of a library are those of this very model file."""
    made_with = catalog.meta("model")
    return made_with == model_fingerprint(settings) and " " in (made_with or "")


class ReembedRun:
    """One run, which completes the new index or leaves it for the next; nobody else may be writing.

    Parameters
    ----------
    library
        Whose faces are described.
    settings
        The library's, with the new descriptor.
    workers, progress, should_stop, limits
        As for an index run.
    prune
        Whether photos whose files are gone are removed; otherwise they are an error. A function is asked,
        with how many these are and how many photos there are.
    """

    def __init__(
        self,
        library: Library,
        settings: FaceSettings,
        *,
        workers: int,
        prune: bool | AgreeToPrune,
        progress: Progress | None,
        should_stop: Callable[[], bool] | None = None,
        limits: Limits | None = None,
    ) -> None:
        from setnet.faces import model_entry, model_paths

        entry = model_entry(settings.descriptor, "descriptor")
        model_paths(entry)
        assert entry.dim is not None
        self._database, self._settings, self._dim = library.database, settings, entry.dim
        self._library, self._catalog = library.path, library.photos
        self._workers, self._prune, self._limits = workers, prune, limits
        self._progress, self._should_stop = progress, should_stop or (lambda: False)
        self._start = perf_counter()
        self._report = ReembedReport(descriptor=settings.descriptor, dim=entry.dim)
        self._failed: dict[int, tuple[Path, str]] = {}

    def over_all(self) -> ReembedReport:
        """Describe what is not yet described and, when all is, put the new state in place."""
        wanted = self._wanted()
        gone = self._gone(wanted)
        for photo in gone:
            del wanted[photo]
        with NewIndex(self._library, self._settings, self._dim) as made:
            done = made.only(wanted)
            self._report = replace(self._report, total=len(wanted), kept=len(done))
            try:
                self._describe(made, wanted, done)
                self._replace(made, gone)
            except KeyboardInterrupt:
                self._report = replace(self._report, interrupted=True)
        return replace(
            self._report,
            failed=tuple(self._failed.values()),
            removed=0 if self._report.interrupted else len(gone),
            seconds=perf_counter() - self._start,
        )

    def _wanted(self) -> dict[int, tuple[float, int]]:
        """Return when each finished photo was stored, and its number of faces."""
        with self._database.reading() as db:
            rows = db.execute("SELECT id, stored, faces FROM photos WHERE state = 'ready'")
            return {photo: (stored, faces) for photo, stored, faces in rows}

    def _gone(self, wanted: dict[int, tuple[float, int]]) -> list[int]:
        """Return the photos with faces whose files are not there; that is an error unless they may go."""
        gone = [
            (photo, path)
            for path, file in self._catalog.known_files().items()
            if any(wanted.get(photo, (0.0, 0))[1] for photo in file.ids) and not os.path.exists(path)
            for photo in file.ids
        ]
        if gone and not (
            self._prune if isinstance(self._prune, bool) else self._prune(len(gone), len(wanted))
        ):
            raise InvalidInputError(
                f"{len(gone):,} of {len(wanted):,} photos are not where they were, so their faces cannot be "
                f"described anew (the first is {display_path(gone[0][1])}). If a disk is not mounted, mount "
                "it; if they were moved, `setnet index` finds them again; if they are gone for good, --prune "
                "removes them from the library (with --yes if they are more than a tenth)"
            )
        return [photo for photo, _ in gone]

    def _describe(self, made: NewIndex, wanted: dict[int, tuple[float, int]], done: set[int]) -> None:
        photos = [photo for photo in wanted if photo not in done]
        if not photos:
            return
        batch: list[ReembeddedPhoto] = []
        since = monotonic()

        def flush() -> None:
            made.add(batch, wanted)
            batch.clear()

        workers = min(self._workers, len(photos))
        with FaceDescriber(self._settings, workers, self._limits) as describer:
            try:
                for described in describer.results(self._photos(photos), self._should_stop):
                    self._take(described, batch)
                    if len(batch) >= _BATCH_PHOTOS or monotonic() - since > _BATCH_SECONDS:
                        flush()
                        since = monotonic()
                    self._show("describing faces", self._report.described + len(self._failed), len(photos))
                    if self._should_stop():
                        raise KeyboardInterrupt
            finally:
                flush()
        if self._should_stop():
            raise KeyboardInterrupt
        if made.index.stats().segments > _MOST_SEGMENTS:
            self._show("tidying up", len(photos), len(photos))
            made.index.compact()

    def _photos(self, ids: Sequence[int]) -> Iterator[LibraryPhoto]:
        for start in range(0, len(ids), _BATCH_PHOTOS):
            yield from self._catalog.get_many(map(str, ids[start : start + _BATCH_PHOTOS])).values()

    def _take(self, described: ReembeddedPhoto, batch: list[ReembeddedPhoto]) -> None:
        photo = described.photo
        if described.reason is not None:
            self._failed[int(photo.id)] = (as_path(photo.stored_path), described.reason)
            return
        batch.append(described)
        self._report = replace(
            self._report,
            described=self._report.described + 1,
            faces=self._report.faces + len(described.descriptors),
        )

    def _replace(self, made: NewIndex, gone: Sequence[int]) -> None:
        """Put the new index in place, and a database that goes with it."""
        self._show("describing people", self._report.described, self._report.described)
        with self._database.reading() as db:
            people = PeopleFaces(db, made.index, self._settings, self._workers, self._limits)
            facts = facts_about(self._settings, self._dim)
            rows = NewRows(self._dim, facts, gone, self._failed)
            described = replace_state(self._library, db, made, people, rows)
        made.delete()
        self._count(described)

    def _count(self, described: dict[FaceRow, NewDescriptor]) -> None:
        with self._database.reading() as db:  # the old one, in which all names still are
            names = dict(db.execute("SELECT id, name FROM people").fetchall())
        examples = {row: new for row, new in described.items() if row.table == "examples"}
        origins = [new.origin for new in examples.values()]
        self._report = replace(
            self._report,
            examples_from_photos=origins.count("photo"),
            examples_from_pictures=origins.count("picture"),
            lost=tuple(
                (names.get(row.person, "?"), None if row.source is None else as_path(row.source))
                for row, new in examples.items()
                if new.vector is None
            ),
        )

    def _show(self, stage: str, done: int, total: int) -> None:
        if self._progress is not None:
            now, seconds = self._report, perf_counter() - self._start
            failed = len(self._failed)
            self._progress(IndexProgress(stage, done, total, now.kept, now.faces, failed, seconds))
