"""A checksum over the whole catalogue file, kept beside it while nobody writes.

SQLite verifies its structure but not every byte. When a writer closes, it writes a checksum of the
file; a check compares it, and the first write removes it.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

__all__ = ["broken", "remove", "write"]


def _checksum_file(catalog: Path) -> Path:
    return catalog.with_suffix(".seal")


def _checksum(catalog: Path) -> dict[str, int]:
    crc, size = 0, 0
    with open(catalog, "rb") as file:
        while part := file.read(1 << 20):
            crc, size = zlib.crc32(part, crc), size + len(part)
    return {"bytes": size, "crc": crc}


def write(catalog: Path) -> None:
    """Write the checksum of a catalogue whose write-ahead log is empty."""
    text = json.dumps(_checksum(catalog))
    temporary = _checksum_file(catalog).with_suffix(".tmp")
    try:
        temporary.write_text(text)
        os.replace(temporary, _checksum_file(catalog))
    except OSError:  # a convenience: without it, a check looks at the contents only
        temporary.unlink(missing_ok=True)


def remove(catalog: Path) -> None:
    """Remove the checksum, before the first write."""
    _checksum_file(catalog).unlink(missing_ok=True)


def broken(catalog: Path) -> str | None:
    """Return what is wrong when there is a checksum and the catalogue does not fit it."""
    stored = _checksum_file(catalog)
    if not stored.exists() or (catalog.with_name(catalog.name + "-wal").exists() and _wal_bytes(catalog)):
        return None
    try:
        expected = json.loads(stored.read_text())
        found = _checksum(catalog)
    except (OSError, ValueError) as error:
        return f"{stored} is damaged: {error}"
    if found["bytes"] != expected.get("bytes"):
        return f"{catalog} has {found['bytes']} bytes, {stored.name} says {expected.get('bytes')}"
    if found["crc"] != expected.get("crc"):
        return f"{catalog} is damaged: its checksum is not the one in {stored.name}"
    return None


def _wal_bytes(catalog: Path) -> int:
    return catalog.with_name(catalog.name + "-wal").stat().st_size
