"""Patterns of files and folders that an index run leaves out."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import translate

from setnet.errors import InvalidInputError

_LONGEST = 1000


class Exclusion:
    """Tells which files and folders are left out, by patterns with `*`, `?` and `[...]`.

    A pattern without a slash is compared with names, one with a slash with the end of paths, and one that
    begins with a slash with whole paths. What lies in a folder that is left out is left out with it.

    >>> leaves_out = Exclusion(["private", "*.tmp.jpg", "2019/raw"])
    >>> leaves_out(b"/p/private"), leaves_out(b"/p/2019/raw"), leaves_out(b"/p/2020/raw")
    (True, True, False)
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        parts = [translate(pattern if pattern[0] == "/" else f"*/{pattern}") for pattern in patterns]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def __call__(self, path: bytes) -> bool:
        """Return whether an absolute path is left out."""
        return self._pattern is not None and self._pattern.match(os.fsdecode(path)) is not None


def checked_patterns(patterns: Sequence[str]) -> list[str]:
    """Return patterns without a slash at the end; empty ones are dropped, what cannot be one is an error.

    >>> checked_patterns(["private/", ""])
    ['private']
    """
    found = []
    for pattern in patterns:
        if len(pattern) > _LONGEST or "\0" in pattern:
            raise InvalidInputError(
                f"a pattern to exclude has at most {_LONGEST} characters, and no null character"
            )
        if clean := pattern.strip().rstrip("/"):
            found.append(clean)
    return found
