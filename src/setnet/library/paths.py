"""Where things are: the files of a library, photos by their paths as bytes, shots by paths of their own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from setnet.addresses import is_address, require_address, to_address
from setnet.errors import InvalidInputError
from setnet.system import data_folder

DATABASE, JOURNAL, INDEX, THUMBNAILS = "library.db", "library.journal", "index", "thumbnails"
COPIES = "copies"  # of the database, one a day at most
VLADS = "vlads.npz"  # of whole photos, to find near-duplicates; made again when it is gone
QUARANTINE = "quarantine"  # what a repair, a restored backup or a new description replaced
REEMBEDDED = "reembedded"  # an index with the descriptors of another model, under way
BACKUP_MARK = "backup.json"  # tells a backup from any other folder
LOCK = "library.lock"  # held while a state is staged and put in place
STAGING = "staging"  # a new state until it is in place; `backup` says how it gets there
NEXT_DATABASE, NEXT_INDEX = f"{STAGING}/{DATABASE}", f"{STAGING}/{INDEX}"
UNFINISHED_DATABASE, SCRATCH = f"{STAGING}/{DATABASE}.part", f"{STAGING}/scratch"
LOGS = tuple(f"{DATABASE}-{log}" for log in ("wal", "shm", "journal"))
# In the order in which they are deleted: a journal without its database would mean a loss.
FILES = (
    *(JOURNAL, f"{JOURNAL}.new", *LOGS, DATABASE, BACKUP_MARK, LOCK),
    *(VLADS, f"{VLADS}.part"),
)
FOLDERS = (STAGING, COPIES, INDEX, REEMBEDDED, THUMBNAILS, QUARANTINE)


def default_library() -> Path:
    """Return `SETNET_LIBRARY`, else `setnet/library` in the user's data folder of this system."""
    chosen = os.environ.get("SETNET_LIBRARY")
    return Path(chosen).expanduser() if chosen else data_folder() / "library"


def library_place(path: str | Path) -> Path:
    """Return the absolute folder of a library; raise for what can be no folder's name."""
    try:
        place = Path(path).expanduser().absolute()
        os.fsencode(place)
    except (RuntimeError, UnicodeError) as error:  # ~nobody
        raise InvalidInputError(f"no place for a library: {str(path)!r} ({error})") from error
    if "\0" in str(place):
        raise InvalidInputError(f"no place for a library: {str(path)!r} has a null character")
    return place


def resolve_path(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """Return the absolute path, `~` expanded, with symbolic links kept as the user wrote them.

    An address such as `s3://bucket/folder` is one already.
    """
    try:
        if is_address(path):
            return os.fsencode(to_address(path))
        text = os.path.expanduser(os.fsdecode(path))
        return os.fsencode(os.path.abspath(text))
    except ValueError as error:  # a null character, or text that no file can be called by
        raise InvalidInputError(f"no path: {os.fspath(path)!r} ({error})") from None


def existing_paths(paths: Iterable[str | bytes | os.PathLike[str] | os.PathLike[bytes]]) -> list[bytes]:
    """Return absolute folders and photos; raise for one that is not there."""
    found = [resolve_path(path) for path in paths]
    for path in found:
        if is_address(path):
            require_address(os.fsdecode(path))
        elif not os.path.exists(path):
            raise InvalidInputError(f"no folder or photo {display_path(path)}")
    return found


def display_path(path: bytes | str | os.PathLike[str]) -> str:
    r"""Return a path that can be printed anywhere; of an address, both slashes, of which a `Path` keeps one.

    >>> display_path(b"/photos/caf\xe9.jpg")
    '/photos/caf\\xe9.jpg'
    """
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return re.sub(r"(^|::)([a-z][a-z0-9+.-]+):(?:/(?!/)|$)", r"\1\2://", text) if is_address(path) else text


def is_gone(path: bytes) -> bool:
    """Return whether no file is there; one at an address may be away for other reasons."""
    return not is_address(path) and not os.path.lexists(path)


def is_below(path: bytes, folder: bytes) -> bool:
    """Return whether a path is that of a folder or lies in it.

    >>> is_below(b"/a/b", b"/a"), is_below(b"/ab", b"/a"), is_below(b"/a", b"/")
    (True, False, True)
    """
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


def folder_text(folder: bytes) -> str:
    """Return a folder as the index's attribute: with a slash at the end, so that a prefix is a subtree.

    >>> folder_text(b"/photos/2019"), folder_text(b"/")
    ('/photos/2019/', '/')
    """
    return display_path(folder).rstrip("/") + "/"


def as_path(path: bytes) -> Path:
    """Return stored bytes as a `Path` that opens the very same file."""
    return Path(os.fsdecode(path))


_TIMES = re.compile(rb"\d{7}\.\d{3}-\d{7}\.\d{3}")


def shot_path(video: bytes, start: float, stop: float) -> bytes:
    """Return the stored path of a shot.

    >>> shot_path(b"/films/party.mp4", 12, 19.5)
    b'/films/party.mp4/0000012.000-0000019.500'
    """
    return video + b"/%011.3f-%011.3f" % (start, stop)


def source_file(path: bytes, start: float | None) -> bytes:
    """Return the file of a stored path: of a shot, which has a start, the video."""
    return path if start is None else os.path.dirname(path)


def is_shot_path(path: bytes) -> bool:
    """Return whether a stored path can only be a shot's.

    >>> is_shot_path(b"/films/party.mp4/0000012.000-0000019.500"), is_shot_path(b"/films/party.mp4")
    (True, False)
    """
    return _TIMES.fullmatch(os.path.basename(path)) is not None


def numbered_places(photo: Path, folder: Path) -> Iterator[Path]:
    """Yield the photo's own name in a folder, then numbered ones.

    >>> places = numbered_places(Path("/2019/both.jpg"), Path("found"))
    >>> str(next(places)), str(next(places))
    ('found/both.jpg', 'found/both (2).jpg')
    """
    yield folder / photo.name
    for number in count(2):
        yield folder / f"{photo.stem} ({number}){photo.suffix}"
