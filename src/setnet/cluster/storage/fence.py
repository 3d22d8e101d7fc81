"""Which writer of a shard counts: the one that came last.

A file lock means nothing across machines, and a machine that stood still may wake up and go on. So each
writer takes a number by creating a file that did not exist, and acknowledges a change only after it has seen
that no later number was taken. What a later writer copied from an earlier one, after taking its number, thus
has everything that the earlier one ever acknowledged.
"""

from __future__ import annotations

import os
from pathlib import Path

from setnet.errors import FencedError
from setnet.system import sync_folder

_FOLDER = "writers"


def take_number(shard: Path, beyond: int = 0) -> int:
    """Take the next number of a shard's writers; from now on no earlier writer acknowledges anything.

    It is larger than ``beyond`` too, where the files of earlier numbers may be lost.
    """
    folder = shard / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        number = max(latest_number(shard), beyond) + 1
        try:
            os.close(os.open(folder / f"{number:06d}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:  # taken by another in this moment
            continue
        sync_folder(folder)
        return number


def latest_number(shard: Path) -> int:
    """Return the number of the latest writer of a shard; 0 when there was none."""
    try:
        return max((int(name) for name in os.listdir(shard / _FOLDER) if name.isdecimal()), default=0)
    except FileNotFoundError:
        return 0


def require_number(shard: Path, number: int) -> None:
    """Raise `FencedError` when a later writer has taken over."""
    if (latest := latest_number(shard)) != number:
        raise FencedError(
            f"writer {number} of {shard} was replaced by writer {latest}: the change may be stored or not, "
            "and can be repeated"
        )


def forget_numbers(shard: Path, before: int) -> None:
    """Remove the files of earlier writers, which the latest number stands for."""
    for name in os.listdir(shard / _FOLDER):
        if name.isdecimal() and int(name) < before:
            (shard / _FOLDER / name).unlink(missing_ok=True)
