"""Captions in files beside the photos: tables of a folder (CSV, JSON), or a text or JSON file per photo."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setnet.errors import InvalidInputError

_PHOTO_KEYS = ("photo", "file", "filename", "image", "path")
_TEXT_KEYS = ("caption", "text", "description", "title", "headline", "names", "alt")
_TABLES = ("captions.csv", "captions.json", "captions.jsonl")


@dataclass
class CaptionFiles:
    """The captions that files of a folder hold, read once per folder; problems are kept by file.

    Parameters
    ----------
    encoding
        Of the files.
    """

    encoding: str = "utf-8"
    problems: list[tuple[str, str]] = field(default_factory=list)
    _folder: str | None = None
    _captions: dict[str, str] = field(default_factory=dict)
    _unused: dict[str, str] = field(default_factory=dict)

    def caption_of(self, photo: str) -> str:
        """Return the caption of a photo; empty when no file has one. Photos come folder by folder."""
        folder, name = os.path.split(photo)
        if folder != self._folder:
            self.close_folder()
            self._folder = folder
            self._read_tables(Path(folder))
        self._unused.pop(name, None)
        parts = [self._captions.get(name, ""), *self._own_files(Path(photo))]
        return "\n".join(dict.fromkeys(part for part in parts if part))

    def close_folder(self) -> None:
        """Note the photos that tables of the folder listed and that were not there."""
        for name, file in self._unused.items():
            if not os.path.exists(os.path.join(self._folder or "", name)):
                self.problems.append((file, f"lists {name}, which is not there"))
        self._captions, self._unused = {}, {}

    def _read_tables(self, folder: Path) -> None:
        for table in _TABLES:
            file = folder / table
            if not file.is_file():
                continue
            text = self._text(file)
            try:
                entries = list(_entries(file, text)) if text is not None else []
            except (ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
                self.problems.append((str(file), f"cannot be read: {error}"))
                continue
            for number, (name, caption) in enumerate(entries, 1):
                if name in self._captions:
                    self.problems.append((str(file), f"entry {number}: a second row for {name}, not used"))
                else:
                    self._captions[name] = caption
                    self._unused[name] = str(file)

    def _own_files(self, photo: Path) -> Iterator[str]:
        """Yield the captions in ``photo.txt``, ``photo.jpg.txt``, ``photo.json`` and ``photo.jpg.json``."""
        for stem in (photo.with_suffix(""), photo):
            for suffix in (".txt", ".json"):
                file = stem.with_name(stem.name + suffix)
                if file.name not in _TABLES and file.is_file() and (text := self._text(file)) is not None:
                    yield text.strip() if suffix == ".txt" else self._json_caption(file, text)

    def _json_caption(self, file: Path, text: str) -> str:
        try:
            entry = json.loads(text)
            return _caption(entry) if isinstance(entry, dict) else ""
        except ValueError as error:
            self.problems.append((str(file), f"cannot be read: {error}"))
            return ""

    def _text(self, file: Path) -> str | None:
        try:
            return file.read_bytes().decode(self.encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            self.problems.append(
                (
                    str(file),
                    f"byte {error.start} is no {self.encoding} text: not used; --encoding names another",
                )
            )
        except OSError as error:
            self.problems.append((str(file), f"cannot be read: {error.strerror or error}"))
        return None


def _entries(file: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield (photo, caption) of a table."""
    if file.suffix == ".csv":
        rows = csv.DictReader(io.StringIO(text))
        columns = rows.fieldnames or ()
        if not set(columns) & set(_PHOTO_KEYS):
            raise InvalidInputError(f"no column {' or '.join(_PHOTO_KEYS)} in it")
        yield from ((_photo(row), _caption(row)) for row in rows)
        return
    lines = f"[{','.join(line for line in text.splitlines() if line.strip())}]"
    listed: Any = json.loads(lines if file.suffix == ".jsonl" else text)
    if isinstance(listed, dict):
        for name, entry in listed.items():
            yield name, _caption(entry) if isinstance(entry, dict) else str(entry)
    else:
        yield from ((_photo(entry), _caption(entry)) for entry in listed)


def _photo(entry: dict[str, str]) -> str:
    return str(next(entry[key] for key in _PHOTO_KEYS if entry.get(key)))


def _caption(entry: dict[str, object]) -> str:
    parts = (entry.get(key) for key in _TEXT_KEYS)
    texts = ("; ".join(map(str, part)) if isinstance(part, list) else str(part) for part in parts if part)
    return "\n".join(text.strip() for text in texts)
