"""Damaged and crafted commit logs of an index; it is opened, changed and repaired."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fuzz.choices import Choices
from tests.fuzz.mutation import json_bytes, mutated_bytes, mutated_json
from tests.fuzz.target import Function
from tests.fuzz.targets.catalog_files import exercise, made, restore

LOG = "commits.log"


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that damages a commit log and uses its index."""
    at_rest, with_log = made(folder / "index")
    root = folder / "index"

    def run(data: bytes) -> None:
        choices = Choices(data)
        files = dict(choices.pick((at_rest, with_log)))
        if choices.once_in(4):  # then all is left to the log
            files["catalog.sqlite"] = files["catalog.sqlite"][: choices.below(2) * 100]
            files = {name: part for name, part in files.items() if not name.endswith("-wal")}
        files[LOG] = _damaged(choices, files[LOG])
        restore(root, files)
        exercise(choices, root)

    yield run


def _damaged(choices: Choices, log: bytes) -> bytes:
    """Return a log with bytes changed, or with records changed and checksums that fit."""
    if choices.once_in(4):
        return mutated_bytes(choices, log)
    lines = log.splitlines()
    for _ in range(choices.several(3)):
        at = choices.below(len(lines))
        if choices.once_in(5):
            text = mutated_bytes(choices, lines[at][9:])
        else:
            words = [1, 2, 3, "added", "dropped", "deleted", "settings", [1, 2], {"1": [0, 1, 99]}]
            text = json_bytes(mutated_json(choices, json.loads(lines[at][9:]), words))
        lines[at] = b"%08x %s" % (zlib.crc32(text), text)
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            break  # cannot be changed any further
    return b"\n".join(lines) + b"\n"
