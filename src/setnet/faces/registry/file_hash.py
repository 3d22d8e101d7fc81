"""SHA-256 of files, remembered by size and time so that a large model is read once, not at each start."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path


def sha256_of(path: Path, cache: Path | None = None) -> str:
    """Return the file's SHA-256 in hex; with `cache` (a folder), remember it there."""
    if cache is None:
        return _hashed(path)
    stat = path.stat()
    state = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
    key, memory = str(path.resolve()), cache / "hashes.json"
    known = _read(memory)
    entry = known.get(key)
    if isinstance(entry, dict) and entry.get("state") == state and isinstance(entry.get("sha256"), str):
        return str(entry["sha256"])
    digest = _hashed(path)
    _write(memory, {**known, key: {"state": state, "sha256": digest}})
    return digest


def _hashed(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(memory: Path) -> dict[str, object]:
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(memory: Path, known: dict[str, object]) -> None:
    # A cache that cannot be written costs time at the next start, nothing else.
    with contextlib.suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=memory.parent, prefix="hashes-", suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(known, file)
        os.replace(name, memory)
