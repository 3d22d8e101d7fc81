"""Manifests: what a step did with each photo, and why; one JSON object per line, streamed both ways."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import IO, Any

from setnet.durable import storage_errors
from setnet.errors import StorageError, VersionError
from setnet.system import sync_folder

Row = dict[str, Any]

FORMAT = 1
_MARK = "setnet collect"
_FLUSH_SECONDS = 1.0
_LONGEST_END = 1 << 16


@dataclass
class Summary:
    """How many rows a manifest has, how many were kept, and for what reasons others were dropped."""

    rows: int = 0
    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    checksum: str = ""

    def count(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self.rows += 1
        if row["kept"]:
            self.kept += 1
        else:
            self.reasons[str(row["reason"])] += 1


class Manifest:
    """A finished manifest on disk; its rows are read one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def exists(self) -> bool:
        """Whether the step is finished."""
        return self.path.is_file()

    def made_from(self) -> Mapping[str, Any]:
        """Return the settings and earlier manifests that this one was made from."""
        with storage_errors(self.path), self.path.open("rb") as file:
            return _header(file.readline(), self.path)

    def summary(self) -> Summary:
        """Return the counts at the end of the file, without reading the rows."""
        with storage_errors(self.path), self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LONGEST_END))
            last = file.read().splitlines()[-1]
        end = _parsed(last, self.path, "the last line")
        if "end" not in end:
            raise _damaged(self.path, "the last line", "the counts are missing")
        return Summary(end["rows"], end["kept"], Counter(end["reasons"]), end["checksum"])

    def rows(self) -> Iterator[Row]:
        """Yield all rows in order."""
        with storage_errors(self.path), self.path.open("rb") as file:
            _header(file.readline(), self.path)
            for number, line in enumerate(file, 2):
                row = _parsed(line, self.path, f"line {number}")
                if "end" in row:
                    return
                yield row
        raise _damaged(self.path, "the end", "the counts are missing")

    def kept(self) -> Iterator[Row]:
        """Yield the rows of what was kept."""
        return (row for row in self.rows() if row["kept"])


class ManifestWriter:
    """Writes a manifest; one that was cut short is continued where it ended.

    Rows go to ``NAME.part``, which becomes the manifest in `finish`: a manifest that exists is whole. What a
    kill or a full disk left of the last line is cut off.

    Parameters
    ----------
    path
        The manifest.
    made_from
        What it is made from; a part that was made from anything else is begun anew.
    key
        The field by which rows are told apart.
    """

    def __init__(self, path: Path, made_from: Mapping[str, Any], key: str) -> None:
        self.path, self.key = path, key
        self.done: set[str] = set()
        self.summary = Summary()
        self._part = path.with_name(f"{path.name}.part")
        self._hash = blake2b(digest_size=8)
        self._flushed = monotonic()
        header = json.dumps({_MARK: FORMAT, "made from": made_from}, sort_keys=True).encode() + b"\n"
        with storage_errors(self._part, "cannot write "):
            self._file: IO[bytes] = self._part.open("r+b" if self._part.is_file() else "w+b")
            os.chmod(self._part, 0o600)  # names and descriptors of people
            self._file.truncate(self._resumed(header))
            self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> ManifestWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _resumed(self, header: bytes) -> int:
        """Count the rows that are there; return where the whole ones end."""
        if self._file.readline() != header:
            self._file.seek(0)
            self._file.write(header)
            self._file.flush()
            return len(header)
        end = len(header)
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                row = json.loads(line)
                self.summary.count(row)
                self.done.add(row[self.key])
            except (ValueError, KeyError, TypeError):
                break
            self._hash.update(line)
            end += len(line)
        return end

    def add(self, row: Row) -> None:
        """Append a row; it is on the disk within a second or so."""
        line = json.dumps(row).encode() + b"\n"
        with storage_errors(self._part, "cannot write "):
            self._file.write(line)
        self._hash.update(line)
        self.summary.count(row)
        if monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush()

    def _flush(self) -> None:
        with storage_errors(self._part, "cannot write "):
            self._file.flush()
            os.fsync(self._file.fileno())
        self._flushed = monotonic()

    def finish(self) -> Summary:
        """Write the counts and let the manifest take its place."""
        self.summary.checksum = self._hash.hexdigest()
        shown = self.summary
        end = {
            "end": True,
            "rows": shown.rows,
            "kept": shown.kept,
            "reasons": dict(shown.reasons.most_common()),
            "checksum": shown.checksum,
        }
        with storage_errors(self._part, "cannot write "):
            self._file.write(json.dumps(end).encode() + b"\n")
        self._flush()
        self._file.close()
        with storage_errors(self.path, "cannot write "):
            os.replace(self._part, self.path)
            sync_folder(self.path.parent)
        return shown

    def close(self) -> None:
        """Keep what was added; a second call, or one after `finish`, does nothing."""
        if not self._file.closed:
            try:
                self._flush()
            finally:
                self._file.close()


def _header(line: bytes, path: Path) -> Mapping[str, Any]:
    header = _parsed(line, path, "line 1")
    if _MARK not in header:
        raise _damaged(path, "line 1", "it is no manifest of `setnet collect`")
    if header[_MARK] > FORMAT:
        raise VersionError(
            f"{path} is of format {header[_MARK]}, this setnet reads {FORMAT}: use a newer one"
        )
    found: Mapping[str, Any] = header["made from"]
    return found


def _parsed(line: bytes, path: Path, where: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _damaged(path, where, str(error)) from error
    if not isinstance(row, dict):
        raise _damaged(path, where, "it is no JSON object")
    return row


def _damaged(path: Path, where: str, why: str) -> StorageError:
    return StorageError(f"{path}, {where}: damaged ({why}); delete the file and run its step again")
