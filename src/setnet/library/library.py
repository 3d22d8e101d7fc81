"""A photo library: a folder with an index of faces and a database about photos and people."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from setnet.durable import own_errors, storage_errors
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, SetNetError, StorageError
from setnet.library.answer import Answer
from setnet.library.creation import (
    LibraryStatus,
    bytes_in,
    check_bytes,
    check_model,
    check_settings,
    create_files,
    expire_quarantine,
    library_exists,
    read_exclusions,
    read_settings,
    remember_folders,
    restrict_files,
    roots_from,
)
from setnet.library.database import Database
from setnet.library.paths import (
    DATABASE,
    INDEX,
    STAGING,
    THUMBNAILS,
    as_path,
    display_path,
    library_place,
)
from setnet.library.person_matcher import PersonMatchers
from setnet.library.photo_catalog import Photos
from setnet.library.query import PersonLike, PhotoQuery, QueryPerson, person_in_file, saved_person
from setnet.library.search import Ranking
from setnet.system import FileLock

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.backup import LibraryBackup
    from setnet.library.groups import Groups
    from setnet.library.index_run import AgreeToPrune, IndexReport, Progress
    from setnet.library.people import People
    from setnet.library.repair import LibraryRepair
    from setnet.library.searches import Searches
    from setnet.sandbox import Limits


_LOG = logging.getLogger("setnet.library")
_LONGEST_DIM = 7  # digits


class Library:
    """Photos, their faces and named people, in one folder.

    Safe to share between threads; other processes may search, and one may index, at the same time.

    Examples
    --------
    >>> library = Library.create(tmp / "library")            # doctest: +SKIP
    >>> library.index([Path("~/Photos")]).added              # doctest: +SKIP
    1204
    >>> library.search(["anna.jpg", "ben.jpg"])[0].path      # doctest: +SKIP
    PosixPath('/home/me/Photos/2019/IMG_0815.jpg')
    """

    @classmethod
    def create(
        cls,
        path: str | Path,
        settings: FaceSettings | None = None,
        *,
        bytes_per_photo: int | None = None,
        beside_others: bool = False,
    ) -> Library:
        """Create an empty library in a new or empty folder; with `beside_others` in any.

        With `bytes_per_photo` (16 to 65,536) the descriptors of a photo's faces share so many bytes and are
        not kept as floats: everything works on what the codes stand for, but for searches by set vectors,
        which there are none of.
        """
        place = library_place(path)
        with storage_errors(place, "cannot make a library: "):
            create_files(place, settings, bytes_per_photo=bytes_per_photo, beside_others=beside_others)
            return cls(place)

    @classmethod
    def open(cls, path: str | Path) -> Library:
        """Open an existing library."""
        place = library_place(path)
        with storage_errors(place):
            if (place / STAGING).exists():
                from setnet.library.backup import finish_interrupted

                finish_interrupted(place)
            if not (place / DATABASE).is_file():
                remedy = "`setnet index PHOTOS` makes one (--library chooses where)"
                if (place / INDEX / "segments").is_dir():
                    remedy = f"{DATABASE} is gone. `setnet repair` saves what it can"
                raise NotAnIndexError(f"no library in {display_path(place)}: {remedy}")
            return cls(place)

    @classmethod
    def open_or_create(
        cls, path: str | Path, *, bytes_per_photo: int | None = None, **chosen: Any
    ) -> Library:
        """Open a library that has the face settings `chosen`, or create it with these."""
        place = library_place(path)
        if not library_exists(place):
            from setnet.faces import FaceSettings

            return cls.create(place, FaceSettings(**chosen), bytes_per_photo=bytes_per_photo)
        library = cls.open(place)
        try:
            check_settings(library.settings, chosen, place)
            if bytes_per_photo is not None:  # which needs the index
                check_bytes(library.set_index.shape.bytes_per_item, bytes_per_photo, place)
        except InvalidInputError:
            library.close()
            raise
        return library

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path / DATABASE)
        self.photos = Photos(self)
        self._reader: SetIndex | None = None
        self._opening = threading.Lock()
        dim = self.photos.meta("dim") or ""
        self.dim = int(dim) if dim.isdecimal() and len(dim) < _LONGEST_DIM else 0
        if self.dim < 1:
            self._database.close()
            raise NotAnIndexError(f"{display_path(path)} holds no complete library: run `setnet repair`")
        self._matchers = PersonMatchers(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files; the library cannot be used afterwards."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._database.close()

    # Imported on first use, as all that a search for saved names can do without.
    @cached_property
    def people(self) -> People:
        """The saved people."""
        from setnet.library.people import People

        return People(self)

    @cached_property
    def groups(self) -> Groups:
        """The groups of faces, with a name and without."""
        from setnet.library.groups import Groups

        return Groups(self)

    @cached_property
    def searches(self) -> Searches:
        """The saved searches."""
        from setnet.library.searches import Searches

        return Searches(self)

    @cached_property
    def settings(self) -> FaceSettings:
        """The detector, the descriptor and their limits, fixed when the library was made."""
        return read_settings(self.photos)

    @cached_property
    def _checked_settings(self) -> FaceSettings:
        """The settings; it is an error if the model has changed since the library was made."""
        check_model(self.photos, self.settings)
        return self.settings

    @property
    def folders(self) -> list[Path]:
        """The folders that were indexed."""
        return [as_path(path) for path in self.photos.folders()]

    @property
    def set_index(self) -> SetIndex:
        """The engine under the library, open for reading."""
        with self._opening:
            if self._reader is None:
                self._reader = open_index(self.path, read_only=True)
            return self._reader

    @contextmanager
    def _writing(self) -> Iterator[SetIndex]:
        with storage_errors(self.path):
            if opened := restrict_files(self.path):
                _LOG.warning(
                    "%d files and folders of the library in %s could be read by others: now by you alone",
                    len(opened),
                    display_path(self.path),
                )
        with open_index(self.path) as index:
            expire_quarantine(self.path)
            yield index
        with storage_errors(self.path):
            restrict_files(self.path)

    @contextmanager
    def _lock_writing(self) -> Iterator[None]:
        """Keep others from writing, without opening the index."""
        try:
            lock = FileLock(self.path / INDEX / "lock")
        except LockedError as error:
            raise _being_written(self.path) from error
        try:
            yield
        finally:
            lock.close()

    @staticmethod
    def repair(path: str | Path) -> LibraryRepair:
        """Repair a damaged library in place, and tell what could not be saved.

        Nothing is changed until the repaired state is complete; what it replaces is kept in the folder
        `quarantine` until something is forgotten, or for a week. What was forgotten stays so.
        """
        from setnet.library.repair import repair

        place = library_place(path)
        with storage_errors(place, "cannot repair: "):
            done = repair(place)
            restrict_files(place)
        return done

    @own_errors
    def backup(self, to: str | Path) -> LibraryBackup:
        """Copy the library, as of one moment, to another folder while it is searched and written.

        The folder is new, empty or an earlier backup, of which unchanged segments are kept. A backup is a
        library: open it, or `restore` it.
        """
        from setnet.library.backup import back_up

        return back_up(self._database, self.set_index, library_place(to))

    @staticmethod
    def restore(backup: str | Path, to: str | Path, replace: bool = False) -> LibraryBackup:
        """Verify a backup and copy it to a folder that is new or empty, or a library to `replace`.

        A library that is replaced stays as it is until the new one is complete.
        """
        from setnet.library.backup import restore

        place = library_place(to)
        with Library.open(backup) as source, storage_errors(place, "cannot restore: "):
            return restore(source._database, source.set_index, place, replace=replace)

    @own_errors
    def index(
        self,
        folders: Sequence[str | os.PathLike[str]] | None = None,
        *,
        collection: str | Path | None = None,
        workers: int | None = None,
        prune: bool | AgreeToPrune = False,
        retry: bool = False,
        exclude: Sequence[str] | None = None,
        progress: Progress | None = None,
        should_stop: Callable[[], bool] | None = None,
        limits: Limits | None = None,
    ) -> IndexReport:
        """Bring the library up to date with folders of photos; without any, with those indexed before.

        Parameters
        ----------
        folders
            Folders or single photos; they are remembered. A known one on an unplugged disk is left out.
        collection
            In place of folders, a folder or address into which `setnet index --to` has put photos and faces,
            with the library's detector and descriptor: no photo is read.
        workers
            Worker processes, by default one per core; 0 works in this process.
        prune
            Remove photos whose files are gone or excluded; a function is asked first, with how many these
            are and how many files the library knows.
        retry
            Look again at files that failed before.
        exclude
            Patterns of files and folders to leave out from now on; by default those kept before.
        progress
            Called with an `IndexProgress` now and then.
        should_stop
            Called again and again; True ends the run as Ctrl-C does, keeping what was found.
        limits
            Time and memory that one photo may take: a minute and 3.2 GB by default.
        """
        from setnet.library.grouping import group_library
        from setnet.library.index_run import IndexRun, RunOptions
        from setnet.library.photo_writer import PhotoWriter

        options = RunOptions(workers, prune, retry, progress, should_stop, limits)
        collected = None
        if collection is None:
            roots = roots_from(folders, self.photos)
        else:
            from setnet.library.collection import CollectedPhotos

            if folders or exclude:
                raise InvalidInputError("a collection says which photos there are: give no folders")
            collected = CollectedPhotos(collection)
            check_settings(self.settings, collected.settings.to_dict(), self.path)
            roots, options = collected.roots, replace(options, retry=True)

        check_model(self.photos, self.settings)
        with self._writing() as index:
            remember_folders(self._database, roots, exclude)
            writer = PhotoWriter(self._database, index)
            group = partial(
                group_library, self._database, index, self._matchers.model, should_stop=should_stop
            )
            excluded = read_exclusions(self.photos)
            run = IndexRun(writer, self.settings, options, excluded, collected, partial(group, interim=True))
            report = run.run(roots)
            if not report.interrupted and (report.has_changed or self.groups.ungrouped_faces):
                try:
                    grouped = group(progress=run.show_grouping)
                    report = replace(report, interrupted=grouped.interrupted)
                except KeyboardInterrupt:  # the photos are stored
                    report = replace(report, interrupted=True)
        if report.removed or report.changed or report.failed:
            from setnet.library.pictures import delete_stale

            delete_stale(self.path / THUMBNAILS, self.photos)
        for remark in self.searches.update_all_links() if report.has_changed else ():
            _LOG.warning("%s", remark)
        return report

    @staticmethod
    def reembed(path: str | Path, descriptor: str | None = None, **options: Any) -> IndexReport:
        """Describe all faces of a library again by another descriptor model; names and corrections stay.

        Faces are not looked for again. Until all are described, searches use the old descriptors; the same
        call goes on with a run that was interrupted. Then the new state replaces the old one, which is kept
        in the folder `quarantine` for a week, and whoever has the library open opens it again.

        `descriptor` is by default the library's own, whose file has changed. The options are `workers`,
        `progress`, `should_stop` and `limits` as for `index`, and `prune`, which removes photos whose files
        are gone: without it they are an error. In the report, `changed` photos were described in this run,
        and `unchanged` ones before.
        """
        from setnet.library.index_run import RunOptions
        from setnet.library.reembed import reembed

        with Library.open(path) as library:
            return reembed(library, descriptor, RunOptions(**options))

    @own_errors
    def search(self, query: PhotoQuery | Sequence[PersonLike], **options: Any) -> Answer:
        """Return the photos that contain a set of people, best first, with timings and warnings.

        `search(people, k=5, only=True)` is short for `search(PhotoQuery(people, k=5, only=True))`.
        """
        if not isinstance(query, PhotoQuery):
            query = PhotoQuery(query, **options)
        elif options:
            raise InvalidInputError(f"give {', '.join(options)} in the PhotoQuery, not beside it")
        return self.rank(query).page(query.offset, query.k)

    @own_errors
    def rank(self, query: PhotoQuery, max_photos: int | None = None) -> Ranking:
        """Return the photos that contain a set of people as a ranking, to read pages from.

        Pages of a ranking cost no search of their own and follow each other without gap or repeat, also
        when the library changes meanwhile. `max_photos` limits how many photos are ranked in the end.
        """
        return Ranking(self.set_index, self.photos, self._matchers, query, self._as_person, max_photos)

    @own_errors
    def person(self, text: str) -> QueryPerson:
        """Return the person meant by a saved name, a group (`g17`), a photo (`group.jpg#3`) or a folder.

        A saved name comes first: write `./anna` for a file of that name.
        """
        if (saved := saved_person(self._database, text)) is not None:
            return saved
        if text.strip()[:1] in ("g", "G") and text in self.groups:
            return self.groups.as_person(text)
        return person_in_file(text, self.people, lambda: self._checked_settings)

    def _as_person(self, person: PersonLike, number: int) -> QueryPerson:
        if isinstance(person, QueryPerson):
            return person
        if isinstance(person, str):
            return self.person(person)
        descriptors = np.atleast_2d(np.asarray(person, dtype=np.float32))
        return QueryPerson(f"person {number}", descriptors)

    @own_errors
    def status(self) -> LibraryStatus:
        """Return what the library holds, its settings and its size on disk."""
        sets, kept = self.set_index.shape.sets, self.set_index.stats()
        return LibraryStatus(
            path=self.path,
            counts=self.photos.counts(),
            folders=tuple(self.folders),
            failures=tuple(self.photos.failures()),
            settings=self.settings,
            dim=self.dim,
            set_vectors="none" if sets is None else sets.name,
            bytes=bytes_in(self.path),
            bytes_per_photo=kept.budget,
            crowded=kept.over_budget,
        )

    @own_errors
    def check(self) -> list[str]:
        """Verify the checksums of all files and that they agree; return the problems found."""
        from setnet.library.check import find_problems

        return find_problems(self._database, lambda: self.set_index)

    @own_errors
    def forget(self, paths: Sequence[str | os.PathLike[str]]) -> int:
        """Delete all data about photos, or about all photos below folders, for good; return how many.

        Examples of saved people that come from them are deleted too. A person who loses the last one stays,
        with `examples` 0, until new ones are added or the person is removed.
        """
        from setnet.library.purge import forget

        with self._writing() as index:
            return forget(self._database, index, paths)

    @own_errors
    def forget_everything(self) -> int:
        """Delete the whole library from disk; it is closed afterwards. Photos are not touched."""
        from setnet.library.purge import delete_files

        photos = self.photos.counts().photos
        try:
            with self._writing():  # nobody else may be writing
                pass
        except SetNetError as error:  # what is damaged must go too
            if isinstance(error, LockedError):
                raise
        self.close()
        delete_files(self.path)
        return photos


def _being_written(library: Path) -> LockedError:
    return LockedError(
        f"the library in {display_path(library)} is being written by another program (`setnet index`, or the "
        "web page): wait for its end, or stop it. Searching goes on meanwhile"
    )


def open_index(library: Path, *, read_only: bool = False) -> SetIndex:
    """Return the index of the library in this folder; for writing unless `read_only`."""
    try:
        return SetIndex.open(library / INDEX, read_only=read_only)
    except NotAnIndexError as error:
        raise NotAnIndexError(
            f"the library in {display_path(library)} has lost its index of faces: "
            "`setnet repair` saves what it can"
        ) from error
    except LockedError as error:
        raise _being_written(library) from error
    except OSError as error:
        raise StorageError(
            f"cannot change the library in {display_path(library)}: {error.strerror or error}"
        ) from error
