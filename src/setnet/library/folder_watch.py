"""Follows folders of photos, and says where something changed once it is quiet there again."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.errors import InvalidInputError
from setnet.library.folder_scan import is_photo_name
from setnet.library.paths import as_path, is_below, resolve_path

if TYPE_CHECKING:
    from watchfiles import Change

_QUIET_SECONDS = 2.0  # nothing may happen for so long: a photo that is being copied is read once, when whole
_LONGEST_SECONDS = 30.0  # but somebody who copies for hours sees photos come
_LOOK_SECONDS = 5.0  # how often disks are looked for that were plugged in or out


def changed_folders(
    roots: Callable[[], Sequence[Path]],
    library: Path,
    *,
    quiet: float = _QUIET_SECONDS,
    look: float = _LOOK_SECONDS,
    stop: threading.Event | None = None,
) -> Iterator[list[Path]]:
    """Yield the folders in which photos came, changed or went; an empty list where nothing did for a while.

    All `roots` are yielded first, for what happened before they were followed. A root that is not there is
    waited for, and yielded when it comes back. What happens in the `library` itself does not count. `quiet`
    is for how many seconds nothing may happen, and `look` after how many disks are looked for.
    """
    try:  # at once: the caller may have hours of work to do first
        from watchfiles import Change, watch
    except ImportError as error:
        raise InvalidInputError(
            "--watch needs the library watchfiles: install it with `pip install 'setnet[app]'`, or "
            "let a timer run `setnet index`"
        ) from error
    inside = resolve_path(library)

    def is_relevant(change: Change, path: str) -> bool:
        name = os.fsencode(os.path.basename(path))
        if name.startswith(b".") or is_below(os.fsencode(path), inside):
            return False
        # What is gone may have been a folder; one that came may be full of photos already.
        return (
            is_photo_name(name)
            or change == Change.deleted
            or (change == Change.added and os.path.isdir(path))
        )

    follow = partial(
        watch,
        watch_filter=is_relevant,
        step=round(1000 * quiet),
        debounce=round(1000 * max(quiet, _LONGEST_SECONDS)),
        rust_timeout=round(1000 * look),
        yield_on_timeout=True,
    )
    return _changes(follow, roots, look, stop or threading.Event())


def _changes(
    follow: Callable[..., Iterator[set[tuple[Change, str]]]],
    roots: Callable[[], Sequence[Path]],
    look: float,
    stop: threading.Event,
) -> Iterator[list[Path]]:
    known: dict[bytes, tuple[int, int]] = {}
    while not stop.is_set():
        folders = [resolve_path(root) for root in roots()]
        there = _existing_folders(folders)
        new = [as_path(folder) for folder in there if known.get(folder) != there[folder]]
        known = there
        if not there:
            stop.wait(look)
            continue
        try:
            for changes in follow(*map(os.fsdecode, there), stop_event=stop):
                concerned = [_nearest_folder(os.fsencode(path), list(there)) for _, path in changes]
                yield _outermost([*new, *map(as_path, concerned)])
                new = []
                if _existing_folders(folders) != there:
                    break
        except FileNotFoundError:  # unplugged between the look and the watch
            known = {}
        except (OSError, RuntimeError) as error:
            raise InvalidInputError(
                f"the folders cannot be followed ({error}): if there are too many, raise the system's limit "
                "(fs.inotify.max_user_watches), or let a timer run `setnet index`"
            ) from error


def _existing_folders(folders: Sequence[bytes]) -> dict[bytes, tuple[int, int]]:
    """Return the folders that are there, each with what tells it from another disk at the same place."""
    found = {}
    for folder in folders:
        with suppress(OSError):
            info = os.stat(folder)
            found[folder] = info.st_dev, info.st_ino
    return found


def _nearest_folder(path: bytes, roots: Sequence[bytes]) -> bytes:
    """Return the folder to look at after a change of a path: the nearest that is still there."""
    if path in roots:
        return path
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    inside = any(is_below(path, root) for root in roots)
    return path if inside else next(root for root in roots if is_below(root, path))


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """Return folders without those inside others.

    >>> _outermost([Path("/a/b"), Path("/a"), Path("/ab")])
    [PosixPath('/a'), PosixPath('/ab')]
    """
    found: list[Path] = []
    for folder in sorted(set(folders)):
        if not any(outer in folder.parents for outer in found):
            found.append(folder)
    return found
