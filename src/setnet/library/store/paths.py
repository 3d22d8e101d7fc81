"""Paths of photos: stored as bytes, shown as printable text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from setnet.addresses import address_of, is_address, require_address
from setnet.errors import InvalidInputError


def stored(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """Return the bytes of a path: the only form that keeps names that are not valid UTF-8."""
    return os.fsencode(path)


def absolute(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """Return the absolute path, `~` expanded, with symbolic links kept as the user wrote them.

    An address such as `s3://bucket/folder` is one already.
    """
    try:
        if is_address(path):
            return os.fsencode(address_of(path))
        text = os.path.expanduser(os.fsdecode(path))
        return os.fsencode(os.path.abspath(text))
    except ValueError as error:  # a null character, or text that no file can be called by
        raise InvalidInputError(f"no path: {os.fspath(path)!r} ({error})") from None


def existing(paths: Iterable[str | bytes | os.PathLike[str] | os.PathLike[bytes]]) -> list[bytes]:
    """Return absolute folders and photos; raise for one that is not there."""
    found = [absolute(path) for path in paths]
    for path in found:
        if is_address(path):
            require_address(os.fsdecode(path))
        elif not os.path.exists(path):
            raise InvalidInputError(f"no folder or photo {shown(path)}")
    return found


def shown(path: bytes | str | os.PathLike[str]) -> str:
    r"""Return a path that can be printed anywhere; of an address, both slashes, of which a `Path` keeps one.

    >>> shown(b"/photos/caf\xe9.jpg")
    '/photos/caf\\xe9.jpg'
    """
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return re.sub(r"(^|::)([a-z][a-z0-9+.-]+):(?:/(?!/)|$)", r"\1\2://", text) if is_address(path) else text


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
    return shown(folder).rstrip("/") + "/"


def as_path(path: bytes) -> Path:
    """Return stored bytes as a `Path` that opens the very same file."""
    return Path(os.fsdecode(path))
