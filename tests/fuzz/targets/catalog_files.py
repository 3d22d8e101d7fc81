"""Damaged catalogues and write-ahead logs of an index; it is opened, changed and repaired."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from setnet import SetIndex
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import DEEP, DIGITS, json_bytes, junk, mutated_bytes, mutated_json
from tests.fuzz.target import Function, attempt

__all__ = ["Files", "exercise", "made", "restore", "target"]

DIM = 4
Files = dict[str, bytes]


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that damages a catalogue and uses its index."""
    at_rest, with_log = made(folder / "index")
    root = folder / "index"

    def run(data: bytes) -> None:
        choices = Choices(data)
        files = choices.pick((at_rest, with_log))
        restore(root, files)
        if choices.below(2):
            _change_rows(choices, root / "catalog.sqlite")
        else:
            name = choices.pick(sorted(name for name in files if name.startswith("catalog.")))
            (root / name).write_bytes(mutated_bytes(choices, files[name]))
        exercise(choices, root)

    yield run


def made(root: Path) -> tuple[Files, Files]:
    """Make an index with deletions and attributes; return its files closed, and as while open."""
    rng = np.random.default_rng(3)
    with SetIndex.create(root, DIM) as index:
        for start in (0, 8):
            values = [{"year": 2000 + i, "place": "here"} for i in range(8)]
            vectors = rng.normal(size=(16, DIM)).astype(np.float32)
            index.add([f"item {start + i}" for i in range(8)], vectors, [2] * 8, values)
    at_rest = _files(root)
    with SetIndex.open(root) as index:
        index.delete(["item 3"])
        return at_rest, _files(root)


def _files(root: Path) -> Files:
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def restore(root: Path, files: Files) -> None:
    """Make the folder hold just these files."""
    shutil.rmtree(root)
    (root / "segments").mkdir(parents=True)
    for name, data in files.items():
        (root / name).write_bytes(data)


def _change_rows(choices: Choices, path: Path) -> None:
    """Put junk where the catalogue has values; SQLite sees nothing wrong with it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.create_function("junk", 1, lambda old: _unlike(choices, old), deterministic=False)
        for _ in range(choices.several(3)):
            tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            table = choices.pick(sorted(tables))
            column = choices.pick([r[1] for r in db.execute(f"PRAGMA table_info({table})")])
            verb = choices.pick(("UPDATE OR REPLACE", "UPDATE OR REPLACE", "UPDATE OR REPLACE", "DELETE"))
            change = f"{verb} {table} SET {column} = junk({column})"
            if verb == "DELETE":
                change = f"DELETE FROM {table}"
            wanted = choices.below(8)
            row = db.execute(f"SELECT {column} FROM {table} LIMIT 1 OFFSET ?", (wanted,)).fetchone()
            only = f" WHERE {column} IS ?" if row and choices.below(4) else ""
            try:
                db.execute(change + only, row if only else ())
            except (sqlite3.Error, OverflowError):  # a row that must not be null, or a number too large
                continue


def _unlike(choices: Choices, old: object) -> Any:
    if isinstance(old, bytes):
        return mutated_bytes(choices, old)
    if isinstance(old, str) and old[:1] in "{[0123456789":
        return json_bytes(mutated_json(choices, json.loads(old))).decode()
    value = junk(choices)
    is_plain = isinstance(value, (int, float, str, bytes)) and value not in (DEEP, DIGITS, "\ud800")
    return value if is_plain and not (isinstance(value, int) and abs(value) >= 2**63) else None


def exercise(choices: Choices, root: Path) -> None:
    """Read, check, repair and change an index that may be damaged in any way."""
    query = np.ones((1, DIM), np.float32)

    def read() -> None:
        with SetIndex.open(root, read_only=True) as index:
            for action in (
                lambda: index.search(query, k=5, mode=choices.pick(("exact", "fast", "set")), threads=1),
                lambda: index.search(query, k=5, where={"year": {">": 2003}}, threads=1),
                lambda: (list(index), len(index), "item 3" in index, index.elements("item 9")),
                index.stats,
                index.check,
            ):
                attempt(action)

    def change() -> None:
        with SetIndex.open(root) as index:
            attempt(lambda: index.add(["item 2", "new"], np.ones((2, DIM), np.float32), [1, 1]))
            attempt(lambda: index.delete(["item 4"]))
            attempt(index.compact)

    attempt(read)
    if choices.once_in(2):
        attempt(change)
    elif attempt(lambda: SetIndex.repair(root, revive=choices.once_in(2))):
        with SetIndex.open(root, read_only=True) as index:
            assert index.check().ok, f"repaired, and not sound: {index.check().problems[0]}"
