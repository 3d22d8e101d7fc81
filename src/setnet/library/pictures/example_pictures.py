"""Pictures of example faces as files, to look at."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from setnet.errors import StorageError
from setnet.library.people.example import Example
from setnet.library.store.paths import shown


def write_pictures(examples: Iterable[Example], folder: Path) -> int:
    """Write the pictures of examples to a folder, as NUMBER.jpg for their owner alone; return how many."""
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for example in examples:
            if example.picture is not None:
                file = os.open(folder / f"{example.number}.jpg", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with open(file, "wb") as opened:
                    opened.write(example.picture)
                written += 1
    except OSError as error:
        raise StorageError(f"cannot write pictures to {shown(folder)}: {error.strerror or error}") from error
    return written
