"""The commit log beside the segments: what was acknowledged, and what else only the catalogue knows.

One line per acknowledged change: a CRC-32 and a JSON record. It is appended and synced after the catalogue's
commit and before the caller hears of it, so the catalogue is never older than the log unless SQLite's own log
was damaged. A repair takes the settings, the living segments and the deleted rows from here; ids and vectors
are in the segments, never in this log.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from setnet.durable import append_durably, replace_file

LONGEST = 1 << 18  # bytes: a longer log is rewritten as one line when the index is opened


@dataclass
class Committed:
    """The state that the lines of a commit log add up to, or that a catalogue is in.

    ``damage`` says what is wrong with the source; without it, all deletions are known.
    """

    generation: int = 0
    settings: dict[str, Any] | None = None
    segments: set[int] = field(default_factory=set)
    deleted: dict[int, set[int]] = field(default_factory=dict)
    damage: str | None = None
    is_tidy: bool = field(default=True, compare=False)
    highest: int = field(default=0, compare=False)  # number of a segment, alive or not

    def apply(self, record: Mapping[str, Any]) -> None:
        """Take in one record."""
        self.generation = record["generation"]
        self.settings = record.get("settings", self.settings)
        self.segments |= set(record.get("added", ()))
        self.highest = max([self.highest, *record.get("added", ())])
        for number in record.get("dropped", ()):
            self.segments.discard(number)
            self.deleted.pop(number, None)
        for number, rows in record.get("deleted", {}).items():
            self.deleted.setdefault(int(number), set()).update(rows)


class CommitLog:
    """The commit log of one index; only its writer appends."""

    def __init__(self, root: Path) -> None:
        self.path = root / "commits.log"

    def read(self) -> Committed | None:
        """Return what the log adds up to; None where there is none, as in an older index.

        A last line that was cut short belongs to a change that was never acknowledged. Any other bad line is
        damage, and what follows it is not believed.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        *lines, rest = data.split(b"\n")
        state = Committed(is_tidy=not rest and len(data) <= LONGEST)
        for number, line in enumerate(lines, 1):
            try:
                state.apply(_parsed(line))
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
                state.damage, state.is_tidy = f"{self.path} is damaged at line {number}", False
                break
        return state

    def append(self, generation: int, **changes: Any) -> None:
        """Record an acknowledged change: segments ``added`` and ``dropped``, rows ``deleted`` by segment."""
        append_durably(self.path, _line(generation, changes))

    def rewrite(self, state: Committed) -> None:
        """Replace the log by one line that says the same as a state."""
        changes = {"settings": state.settings, "added": state.segments, "deleted": state.deleted}
        replace_file(self.path, _line(state.generation, changes))


def _line(generation: int, changes: Mapping[str, Any]) -> bytes:
    present = {key: value for key, value in changes.items() if value}
    text = json.dumps({"generation": generation, **present}, sort_keys=True, default=sorted).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parsed(line: bytes) -> Mapping[str, Any]:
    crc, _, text = line.partition(b" ")
    if b"%08x" % zlib.crc32(text) != crc:
        raise ValueError("its checksum does not fit")
    record: Mapping[str, Any] = json.loads(text)
    rows = record.get("deleted", {})
    numbers = [record["generation"], *record.get("added", ()), *record.get("dropped", ()), *map(int, rows)]
    numbers += chain.from_iterable(rows.values())
    if not all(type(number) is int and 0 <= number < 2**62 for number in numbers):
        raise ValueError("one of its numbers is none")
    if not isinstance(record.get("settings", {}), dict):
        raise ValueError("its settings are none")
    return record
