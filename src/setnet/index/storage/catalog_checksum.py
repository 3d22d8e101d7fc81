"""Checksums over the whole catalogue and commit log, kept beside them while nobody writes.

SQLite verifies its structure but not every byte. When a writer closes, it writes the checksums; a check
compares them, and the first write removes them.
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from pathlib import Path

from setnet.durable import replace_file
from setnet.index.storage.catalog_access import log_bytes
from setnet.index.storage.commit_log import CommitLog
from setnet.system import sync_folder


def write(catalog: Path) -> None:
    """Write the checksums of a catalogue whose write-ahead log is empty, and of its commit log."""
    with suppress(OSError):  # a convenience: without it, a check looks at the contents only
        sums = {**_checksum(catalog), "log": _checksum(CommitLog(catalog.parent).path)}
        replace_file(_checksum_file(catalog), json.dumps(sums).encode())


def remove(catalog: Path) -> None:
    """Remove the checksums, for good before the first write: they must not come back beside changed files."""
    if _checksum_file(catalog).exists():
        _checksum_file(catalog).unlink()
        sync_folder(catalog.parent)


def broken(catalog: Path) -> str | None:
    """Return what is wrong when there are checksums and a file does not fit its own."""
    stored = _checksum_file(catalog)
    if not stored.exists() or log_bytes(catalog):
        return None
    try:
        text = stored.read_bytes()
        expected = json.loads(text)
        log = expected.pop("log", None)
        files = [(catalog, expected)] + ([(CommitLog(catalog.parent).path, log)] if log else [])
        wrong = [path for path, sums in files if _checksum(path) != sums]
        if not stored.exists() or stored.read_bytes() != text:  # a writer began meanwhile
            return None
    except (OSError, ValueError) as error:
        return f"{stored} is damaged: {error}"
    return f"{wrong[0]} is damaged: its checksum is not the one in {stored.name}" if wrong else None


def _checksum_file(catalog: Path) -> Path:
    return catalog.with_suffix(".seal")


def _checksum(path: Path) -> dict[str, int]:
    crc, size = 0, 0
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            crc, size = zlib.crc32(part, crc), size + len(part)
    return {"bytes": size, "crc": crc}
