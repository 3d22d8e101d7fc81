"""Damaged and crafted segment files: the index around them is opened, searched, checked and repaired."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setnet import SetIndex
from setnet.engine.segment_file import TAIL, TRAILER
from setnet.errors import SetNetError
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import NUMBERS, json_bytes, junk, mutated_bytes
from tests.fuzz.target import Function, attempt
from tests.support.segment_bytes import checksums, footer_and_arrays, places, put_together

Row = tuple[int, int, int, int]  # items, elements, bytes, crc
DIM = 9
CODED = 260  # items: a segment of so many has codes
QUERY = np.random.default_rng(1).normal(size=(2, DIM)).astype(np.float32)
KINDS: dict[str, dict[str, Any]] = {
    "float": {"set_bits": 32},
    "half": {"set_bits": 16, "precision": "float16"},
    "bytes": {"set_bits": 8},
    "nibbles": {"set_bits": 4},
    "bits": {"set_bits": 1},
}


@dataclass
class Damaged:
    """An index with one segment that is damaged again and again."""

    root: Path
    segment: Path
    sound: bytes
    row: Row
    answers: dict[str, Any]

    @property
    def parts(self) -> tuple[dict[str, Any], bytearray]:
        """The footer, and all bytes up to the end of the arrays."""
        return footer_and_arrays(self.sound)


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that damages a segment and uses the index around it."""
    indexes = [made(folder / name, options, CODED) for name, options in KINDS.items()]
    indexes.append(made(folder / "tiny", KINDS["float"], 20))

    def run(data: bytes) -> None:
        choices = Choices(data)
        with np.errstate(all="ignore"):  # crafted vectors may be as long as they like
            _try(choices, choices.pick(indexes))

    yield run


def made(root: Path, options: dict[str, Any], items: int) -> Damaged:
    """Make an index with codes, a wide item, and attributes in one segment."""
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 4, items)
    counts[5] = 40
    elements = rng.normal(size=(counts.sum(), DIM)).astype(np.float32)
    values = [{"year": i % 7, "place": f"p{i % 3}"} if i % 2 else None for i in range(items)]
    with SetIndex.create(root, DIM, **options) as index:
        index.add([f"item {i}" for i in range(items)], elements, counts, values)
        answers = {name: use(index) for name, use in (SEARCHES | SLOW).items()}
    (segment,) = (root / "segments").iterdir()
    with closing(sqlite3.connect(root / "catalog.sqlite")) as db:
        row = db.execute("SELECT items, elements, bytes, crc FROM segments").fetchone()
    return Damaged(root, segment, segment.read_bytes(), row, answers)


SEARCHES: dict[str, Callable[[SetIndex], Any]] = {
    "exact": lambda index: index.search(QUERY, k=3, threads=1),
    "many": lambda index: index.search(QUERY, k=200, threads=1),
    "set": lambda index: index.search(QUERY, k=3, mode="set", threads=1),
    "fast": lambda index: index.search(QUERY, k=3, mode="fast", threads=1),
    "where": lambda index: index.search(QUERY, k=3, where={"year": [1, 2]}, threads=1),
    "items": lambda index: list(index),
    "elements": lambda index: index.elements("item 5").tolist(),
}
SLOW: dict[str, Callable[[SetIndex], Any]] = {
    "optimal": lambda index: index.search(QUERY, k=3, matching="optimal", threads=1),
    "only": lambda index: index.search(QUERY, k=3, without=QUERY[:1], only=True, threads=1),
}

# -- damage ----------------------------------------------------------------------------------------


def _crafted_values(choices: Choices, index: Damaged) -> bytes:
    """Overwrite entries of arrays, and make all checksums fit."""
    footer, body = index.parts
    arrays = places(footer)
    for _ in range(choices.pick((1, 1, 2))):
        dtype, start, bytes_, _ = arrays[choices.pick(sorted(arrays))]
        size = np.dtype(dtype).itemsize
        for _ in range(choices.pick((1, 1, 4, 16))):
            at = start + choices.below(max(1, bytes_ // size)) * size
            number = choices.below(800) - 400 if choices.once_in(3) else choices.pick(NUMBERS)
            body[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")
    return put_together(body, checksums(footer, bytes(body)), footer)


def _crafted_footer(choices: Choices, index: Damaged) -> bytes:
    """Change what the footer says, and make its checksum fit."""
    footer, body = index.parts
    sums = checksums(footer, bytes(body))
    names = sorted(footer["arrays"])
    name, other = choices.pick(names), choices.pick(names)
    entry = footer["arrays"][name]
    match choices.below(6):
        case 0:
            entry[1][choices.below(len(entry[1]))] = junk(choices)
        case 1:
            entry[choices.below(2)] = junk(choices)
        case 2:
            kinds = ("<i8", "<i4", "|u1", "<f4", "<f2", "<f8", "|O", "<U9", "", 3, None)
            entry[0] = choices.pick(kinds)
        case 3:
            values = [junk(choices), [1e9, 0.0], [0, 0]]
            footer["info"][choices.pick([*footer["info"], "first_wide"])] = choices.pick(values)
        case 4:
            footer["arrays"][name], footer["arrays"][other] = footer["arrays"][other], entry
            footer["arrays"].pop(choices.pick((name, other, "none")), None)
        case _:
            words = [b"0", b"1", b"[", b"]", b"{", b"}", b",", b'"', b"-", b"e", b".", b"\0", b"\xff"]
            text = mutated_bytes(choices, json.dumps(footer).encode(), words)
            return put_together(body, sums, text)
    return put_together(body, sums, json_bytes(footer))


def _row_of(data: bytes, otherwise: Row) -> Row:
    """Return what a catalogue would have to say for the damaged file to be taken."""
    try:
        length, crc = TRAILER.unpack(data[-TRAILER.size :])[:2]
        info = json.loads(data[-TRAILER.size - length : -TRAILER.size])["info"]
        items, elements = info["items"], info["elements"]
    except Exception:
        return otherwise
    if type(items) is int and type(elements) is int and max(abs(items), abs(elements)) < 2**63:
        return items, elements, len(data), crc
    return *otherwise[:2], len(data), crc


# -- one input -------------------------------------------------------------------------------------


def _try(choices: Choices, index: Damaged) -> None:
    is_crafted = bool(choices.below(5))
    if is_crafted:
        data = choices.pick((_crafted_values, _crafted_values, _crafted_footer))(choices, index)
        row = index.row if choices.once_in(10) else _row_of(data, index.row)
    else:
        data, row = mutated_bytes(choices, index.sound, [TAIL, b"\0" * 64]), index.row
    index.segment.write_bytes(data)
    with closing(sqlite3.connect(index.root / "catalog.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("UPDATE segments SET items = ?, elements = ?, bytes = ?, crc = ?", row)
    attempt(lambda: _use(choices, index.root, None if is_crafted else index.answers))
    if not is_crafted and data != index.sound and choices.once_in(2):
        assert not _is_sound(index.root), "check() says that a damaged segment is sound"
    if choices.once_in(40):
        _repair_copy(choices, index.root)


def _use(choices: Choices, root: Path, expected: dict[str, Any] | None) -> None:
    """Search a damaged index; where checksums do not hide it, answers are right or errors."""
    with SetIndex.open(root, read_only=True) as index:
        for _ in range(3):
            searches = SLOW if choices.once_in(100) else SEARCHES
            name = choices.pick(list(searches))
            try:
                answer = searches[name](index)
            except SetNetError:
                continue
            assert expected is None or answer == expected[name], f"search {name!r}: a wrong answer"
        if choices.once_in(4):
            attempt(index.check)


def _is_sound(root: Path) -> bool:
    try:
        with SetIndex.open(root, read_only=True) as index:
            return index.check().ok
    except SetNetError:
        return False


def _repair_copy(choices: Choices, root: Path) -> None:
    """Repair, extend and compact a copy; what was repaired is sound."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy)
    try:
        if attempt(lambda: SetIndex.repair(copy, revive=choices.once_in(2))):
            with SetIndex.open(copy, read_only=True) as index:
                assert index.check().ok, f"repaired, and not sound: {index.check().problems[0]}"
        attempt(lambda: extend(copy))
    finally:
        shutil.rmtree(copy)


def extend(root: Path) -> None:
    """Open for writing, add an item, delete one, and compact."""
    with SetIndex.open(root) as index:
        index.add(["more"], np.ones((1, DIM), np.float32), [1])
        attempt(lambda: index.delete(["item 7"]))
        index.compact()
