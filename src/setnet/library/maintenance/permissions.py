"""Who may read a library's files: its owner alone, or the owner's group too.

Descriptors are biometric data, so files are 0600 and folders 0700 whatever the umask; a library that is
shared with a group has 0640 and 0750. The mode of `library.db` is the pattern: its logs get the same.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from setnet.library.store.location import DATABASE, FILES, FOLDERS, THUMBNAILS
from setnet.library.store.paths import shown
from setnet.system import restrict_access

_LOG = logging.getLogger("setnet.library")


def restrict(library: Path, *, group_readable: bool) -> list[Path]:
    """Give all files and folders of a library their mode; return those that others could read."""
    return restrict_access(_parts(library, 0o750 if group_readable else 0o700), group_readable=group_readable)


def restrict_with_notice(library: Path, *, group_readable: bool) -> None:
    """Restrict what others can read, and say so."""
    opened = restrict(library, group_readable=group_readable)
    if opened:
        _LOG.warning(
            "%d files and folders of the library in %s could be read by others: now by %s",
            len(opened),
            shown(library),
            "you and your group alone" if group_readable else "you alone (--group-readable lets your group)",
        )


def _parts(library: Path, folder_mode: int) -> Iterator[Path]:
    """Yield the library's own files and folders."""
    if set(os.listdir(library)) <= {*FILES, *FOLDERS}:  # else the folder is not the library's alone
        yield library
    yield from (library / name for name in FILES)
    for top in (library / name for name in FOLDERS):
        if top.is_dir() and not (top.name == THUMBNAILS and top.stat().st_mode & 0o777 == folder_mode):
            for folder, _, files in os.walk(top):
                yield from (Path(folder), *(Path(folder, file) for file in files))


def make_folder(folder: Path, library: Path) -> None:
    """Make a folder inside a library, where there is none, with the library's mode."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if _is_shared(library):
            folder.chmod(0o750)


def write_private(path: Path, data: bytes, library: Path) -> None:
    """Write a new file inside a library, with the library's mode."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    if _is_shared(library):
        path.chmod(0o640)


def _is_shared(library: Path) -> bool:
    return (library / DATABASE).stat().st_mode & 0o044 == 0o040
