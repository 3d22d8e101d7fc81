"""Which folders of a library seem to be on a disk that is unplugged: their photos are not gone."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress

from setnet.addresses import is_address
from setnet.library.store.paths import is_below

_REMEDY = "its photos stay in the library until it is back, or until you `setnet forget` it"


_MOST_SHARE = 10


def is_few(gone: int, known: int) -> bool:
    """Return whether so few photos are gone that they may be removed without a question.

    If more than a tenth is gone, a disk may be away.

    >>> is_few(10, 100), is_few(11, 100)
    (True, False)
    """
    return gone * _MOST_SHARE <= known


def away_folders(
    roots: Sequence[bytes], folders: Collection[bytes], known: Collection[bytes]
) -> list[tuple[bytes, str]]:
    """Return the roots of a run that are not there, or empty like an unused mount point, and what to do.

    `folders` and `known` are the library's folders and photos. A single photo that is gone was deleted; a
    folder inside the library's, or one in which there never was a photo, may be empty.
    """
    found = []
    for root in roots:
        if is_address(root):  # the scan says what is wrong with it
            continue
        if not os.path.exists(root):
            if root not in known:
                found.append((root, f"is not there (is its disk plugged in?): {_REMEDY}"))
        elif root in folders and _is_empty(root) and any(is_below(path, root) for path in known):
            found.append((root, f"is empty (is its disk plugged in?): {_REMEDY}"))
    return found


def _is_empty(folder: bytes) -> bool:
    with suppress(OSError), os.scandir(folder) as entries:
        return next(entries, None) is None
    return False
