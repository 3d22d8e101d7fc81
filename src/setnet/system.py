"""What differs between operating systems: cores, memory, file locks, access and the user's folders."""

from __future__ import annotations

import os
import stat
import sys
import weakref
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from setnet.errors import LockedError


def usable_cores() -> int:
    """Return the number of cores this process may run on; all of them where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory() -> int:
    """Return the bytes of main memory; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def peak_memory() -> int:
    """Return the most bytes of memory that this process has held; 0 where the system does not say."""
    try:
        unix = import_module("resource")
    except ImportError:
        return 0
    peak: int = unix.getrusage(unix.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


class FileLock:
    """An exclusive lock on a file, held from creation until `close` or the end of the process.

    Raises `LockedError` at once when anyone holds it, this process included. (A few lines of our own rather
    than the `filelock` library: one dependency less, and the lock is exactly one open file.)

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> lock = FileLock(path)
    >>> FileLock(path)
    Traceback (most recent call last):
    setnet.errors.LockedError: /.../lock is locked by another process or another part of this one
    >>> lock.close()
    >>> FileLock(path).close()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._process = os.getpid()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        # an interrupt may come before anyone holds this object: then the lock is given back with it
        self._close = weakref.finalize(self, os.close, self._file)
        try:
            _lock(self._file)
        except OSError:
            self.close()
            raise LockedError(f"{path} is locked by another process or another part of this one") from None

    def close(self) -> None:
        """Give the lock back; a second call does nothing."""
        self._close()

    @property
    def is_ours(self) -> bool:
        """Whether this process took the lock, and was not forked from the one that did."""
        return os.getpid() == self._process

    def verify(self) -> None:
        """Raise `LockedError` when the lock no longer keeps others out: after a fork, or without its file."""
        if not self.is_ours:
            raise LockedError(
                f"{self.path} is locked by process {self._process}, from which this one was forked: open it "
                "again in this process"
            )
        try:
            on_disk = os.stat(self.path)
        except FileNotFoundError:
            on_disk = None
        held = os.fstat(self._file)
        if on_disk is None or (on_disk.st_dev, on_disk.st_ino) != (held.st_dev, held.st_ino):
            raise LockedError(
                f"{self.path} was deleted or replaced while it was locked: another process may be writing. "
                "Close and open again"
            )


def _lock(file: int) -> None:
    """Lock an open file or raise OSError; the system unlocks it when the file is closed."""
    try:
        unix = import_module("fcntl")
    except ImportError:
        windows = import_module("msvcrt")
        windows.locking(file, windows.LK_NBLCK, 1)
    else:
        unix.flock(file, unix.LOCK_EX | unix.LOCK_NB)


def sync_folder(folder: Path) -> None:
    """Make the names of a folder's files as durable as their contents."""
    if os.name == "nt":  # folders cannot be opened there; the file system journals names by itself
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def restrict_access(paths: Iterable[Path], *, group_readable: bool) -> list[Path]:
    """Let nobody but the owner, or the owner's group too, read files and folders; return those others could.

    Files become 0600 and folders 0700; with ``group_readable`` 0640 and 0750.
    """
    if os.name == "nt":  # access lists instead of modes, inherited from the user's folder
        return []
    opened = []
    for path in paths:
        with suppress(OSError):  # gone since, or another user's: that one restricts it
            mode = path.stat().st_mode
            wanted = 0o700 | 0o050 * group_readable
            if not stat.S_ISDIR(mode):
                wanted &= 0o640
            if mode & 0o777 != wanted:
                path.chmod(wanted)
            if mode & 0o777 & ~wanted:
                opened.append(path)
    return opened


def data_folder() -> Path:
    """Return the folder for this user's libraries."""
    from platformdirs import user_data_path  # slow to import, and a search needs no folder of the user's

    return user_data_path("setnet", appauthor=False)


def cache_folder() -> Path:
    """Return the folder for files that can be fetched or computed again."""
    from platformdirs import user_cache_path

    return user_cache_path("setnet", appauthor=False)


def config_folder() -> Path:
    """Return the folder for this user's settings."""
    from platformdirs import user_config_path

    return user_config_path("setnet", appauthor=False)
