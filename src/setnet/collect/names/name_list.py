"""The list of people to look for: from a file or from the folders of portraits, duplicates told apart."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from setnet.collect.names.name_forms import Form, full_form
from setnet.collect.run.manifest import Row
from setnet.collect.run.run_folder import CollectRun
from setnet.errors import InvalidInputError
from setnet.library import FolderScan


@dataclass(frozen=True, slots=True)
class ListedName:
    """A name of the list, with other names of the same person and where it was read."""

    name: str
    aliases: tuple[str, ...]
    entry: str


def name_rows(run: CollectRun) -> Iterator[Row]:
    """Yield a row for each entry of the list: kept, or dropped because it is there twice or has no portraits.

    Folders of portraits whose name is not in the list get a row too.
    """
    folders = _folders(Path(run.settings.portraits))
    if run.settings.names is None:
        listed = [ListedName(_spaced(path.name), (), str(path)) for path in folders.values()]
    else:
        listed = read_names(Path(run.settings.names))
    seen: dict[Form, str] = {}
    used: set[Form] = set()
    for each in listed:
        row: Row = {"entry": each.entry, "name": each.name, "aliases": list(each.aliases)}
        form = full_form(each.name)
        folder = next((f for f in map(full_form, (each.name, *each.aliases)) if f in folders), None)
        if form in seen:
            yield row | {"kept": False, "reason": "listed twice", "detail": f"as {seen[form]}"}
        elif folder is None or folder in used:
            yield row | {"kept": False, "reason": "no folder of portraits"}
        else:
            used.add(folder)
            place = os.fspath(folders[folder])
            yield row | {"kept": True, "folder": place, "files": _digest(place)}
        seen.setdefault(form, each.name)
    for form, path in folders.items():
        if form not in used and form not in seen:
            name = _spaced(path.name)
            yield {"entry": str(path), "name": name, "kept": False, "reason": "not in the list of names"}


def read_names(path: Path) -> list[ListedName]:
    """Return the names of a file.

    ``.csv`` has a column ``name`` and maybe ``aliases``, separated by semicolons; ``.json`` is a list of
    names or of objects with these keys; of any other file each line is a name, with aliases after ``|``;
    lines that begin with ``#`` are remarks.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        found = list(_READERS.get(path.suffix.lower(), _lines)(text, path.name))
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path}: byte {error.start} is no UTF-8 text; save the list of names as UTF-8"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"{path}: no list of names ({error!r}); expected a name per line, .csv with a column 'name', or "
            ".json with a list"
        ) from error
    if not found:
        raise InvalidInputError(f"{path}: the list of names is empty")
    return found


def _lines(text: str, file: str) -> Iterator[ListedName]:
    for number, line in enumerate(text.splitlines(), 1):
        name, *aliases = (part.strip() for part in line.split("|"))
        if name and not name.startswith("#"):
            yield ListedName(_spaced(name), _clean(aliases), f"{file}:{number}")


def _csv(text: str, file: str) -> Iterator[ListedName]:
    rows = csv.DictReader(text.splitlines())
    for number, row in enumerate(rows, 2):
        if name := row["name"].strip():
            yield ListedName(_spaced(name), _clean((row.get("aliases") or "").split(";")), f"{file}:{number}")


def _json(text: str, file: str) -> Iterator[ListedName]:
    for number, each in enumerate(json.loads(text), 1):
        entry = {"name": each} if isinstance(each, str) else each
        aliases = _clean(entry.get("aliases", []))
        yield ListedName(_spaced(entry["name"]), aliases, f"{file}#{number}")


_READERS = {".csv": _csv, ".json": _json}


def _clean(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names if name.strip())


def _folders(portraits: Path) -> dict[Form, Path]:
    found: dict[Form, Path] = {}
    for path in sorted(portraits.iterdir()):
        if path.is_dir() and not path.name.startswith(".") and (form := full_form(_spaced(path.name))):
            found.setdefault(form, path)
    if not found:
        raise InvalidInputError(
            f"{portraits} has no folders of portraits: expected PORTRAITS/Name/*.jpg, a folder per person"
        )
    return found


def _spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").encode("utf-8", "backslashreplace").decode().split())


def _digest(folder: str) -> str:
    """Return what changes when portraits are added, removed or replaced."""
    digest = blake2b(digest_size=8)
    for file in FolderScan([os.fsencode(folder)]).files():
        digest.update(b"%s %d %d\n" % (file.path, file.size, file.mtime_ns))
    return digest.hexdigest()
