"""The open files of a library: its database, its index and the settings of its faces."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from setnet.durable import storage_errors
from setnet.engine import SetIndex
from setnet.errors import LockedError, NotAnIndexError, StorageError
from setnet.library.backup import expire_quarantine
from setnet.library.creation import (
    check_model,
    excluded_of,
    restrict_files,
    restrict_files_with_notice,
    settings_of,
)
from setnet.library.database import Database
from setnet.library.paths import DATABASE, INDEX, as_path, display_path
from setnet.library.people import People
from setnet.library.person_matcher import Matching
from setnet.library.photo_catalog import PhotoCatalog
from setnet.system import FileLock

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_LONGEST_DIM = 7  # digits


class LibraryFiles:
    """The files of one library, opened when they are first used; what `Library` does is done on them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path / DATABASE)
        self.catalog = PhotoCatalog(self._database)
        self._reader: SetIndex | None = None
        self._opening = threading.Lock()
        dim = self.catalog.meta("dim") or ""
        self.dim = int(dim) if dim.isdecimal() and len(dim) < _LONGEST_DIM else 0
        if self.dim < 1:
            self._database.close()
            raise NotAnIndexError(f"{display_path(path)} holds no complete library: run `setnet repair`")
        self.people = People(self._database, self.dim, lambda photo_id: self.set_index.elements(photo_id))
        self.matching = Matching(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_gone(self) -> bool:
        """Whether another process deleted the library, or replaced it by a new one."""
        return self._database.is_gone

    def close(self) -> None:
        """Close all files; the library cannot be used afterwards."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._database.close()

    @cached_property
    def settings(self) -> FaceSettings:
        """The detector, the descriptor and their limits, fixed when the library was made."""
        return settings_of(self.catalog)

    def _checked_settings(self) -> FaceSettings:
        check_model(self.catalog, self.settings)
        return self.settings

    @property
    def folders(self) -> list[Path]:
        """The folders that were indexed."""
        return [as_path(path) for path in self.catalog.folders()]

    @property
    def excluded(self) -> list[str]:
        """The patterns of files and folders that index runs leave out."""
        return excluded_of(self.catalog)

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
            restrict_files_with_notice(self.path, group_readable=self.group_readable)
        with open_index(self.path) as index:
            expire_quarantine(self.path)
            yield index
        with storage_errors(self.path):
            restrict_files(self.path, group_readable=self.group_readable)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from writing, without opening the index."""
        try:
            lock = FileLock(self.path / INDEX / "lock")
        except LockedError as error:
            raise _being_written(self.path) from error
        try:
            yield
        finally:
            lock.close()

    @property
    def group_readable(self) -> bool:
        """Whether the group that owns the files may read them; else their owner alone."""
        return self.catalog.meta("group_readable") == "yes"


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
