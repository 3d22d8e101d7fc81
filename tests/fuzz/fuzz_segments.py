"""Damages small segment files in seeded ways, and opens, searches and checks the index around each.

Only `setnet.errors` may come out. Run as a program it counts inputs for a time; with ``--sanitize`` it builds
the kernels with AddressSanitizer and UndefinedBehaviorSanitizer first, and runs itself on that copy:

    python tests/fuzz/fuzz_segments.py --inputs 100000 --seconds 600 --sanitize
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setnet import SetIndex, SetNetError
from setnet.index.storage.segments.segment_file import FORMAT, TAIL, TRAILER

SECONDS_PER_INPUT = 30
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # no disk to wait for
NUMBERS = [0, 1, -1, 2, 15, 16, 63, 64, 255, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
KINDS: dict[str, dict[str, Any]] = {
    "float": {"set_bits": 32},
    "half": {"set_bits": 16, "precision": "float16"},
    "bytes": {"set_bits": 8},
    "nibbles": {"set_bits": 4},
    "bits": {"set_bits": 1},
}


@dataclass
class Target:
    """An index with one segment that is damaged again and again."""

    root: Path
    segment: Path
    sound: bytes
    row: tuple[int, int, int, int]  # items, elements, bytes, crc

    @property
    def footer(self) -> dict[str, Any]:
        length = TRAILER.unpack(self.sound[-TRAILER.size :])[0]
        return dict(json.loads(self.sound[-TRAILER.size - length : -TRAILER.size]))


def make_targets(folder: Path) -> list[Target]:
    """Make one index per precision of set vectors, with codes, wide items and attributes, and a tiny one."""
    targets = []
    for items in (300, 20):
        for name, options in KINDS.items() if items == 300 else [("tiny", KINDS["float"])]:
            rng = np.random.default_rng(7)
            counts = rng.integers(0, 4, items)
            counts[5] = 40  # a wide item
            elements = rng.normal(size=(counts.sum(), 9)).astype(np.float32)
            values = [{"year": i % 7, "place": f"p{i % 3}"} if i % 2 else None for i in range(items)]
            with SetIndex.create(folder / name, 9, **options) as index:
                index.add([f"item {i}" for i in range(items)], elements, counts, values)
                index.tag({"anna": elements[:1], "ben": elements[4:5]})
            (segment,) = (folder / name / "segments").iterdir()
            with sqlite3.connect(folder / name / "catalog.sqlite") as db:
                row = db.execute("SELECT items, elements, bytes, crc FROM segments").fetchone()
            db.close()
            targets.append(Target(folder / name, segment, segment.read_bytes(), row))
    return targets


# -- damage --------------------------------------------------------------------------------------------------


def flipped(rng: random.Random, target: Target) -> bytes:
    """Change a few bytes anywhere."""
    data = bytearray(target.sound)
    for _ in range(rng.choice([1, 1, 1, 3, 20])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def resized(rng: random.Random, target: Target) -> bytes:
    """Cut, extend, or leave out a middle."""
    data, at = target.sound, rng.randrange(len(target.sound))
    return rng.choice([data[:at], data + bytes(at % 500), data[:at] + data[at + rng.randrange(1, 200) :]])


def mended(body: bytes, footer: bytes) -> bytes:
    """Return a file whose trailer fits its footer, so that what is wrong is found later, if at all."""
    return body + footer + TRAILER.pack(len(footer), zlib.crc32(footer), FORMAT, TAIL)


def crafted_values(rng: random.Random, target: Target) -> bytes:
    """Overwrite entries of one array, and make all checksums fit."""
    footer = target.footer
    end = len(target.sound) - TRAILER.size - TRAILER.unpack(target.sound[-TRAILER.size :])[0]
    body = bytearray(target.sound[:end])
    for _ in range(rng.choice([1, 1, 2])):
        entry = footer["arrays"][rng.choice(list(footer["arrays"]))]
        size = np.dtype(entry["dtype"]).itemsize
        entries = max(1, entry["bytes"] // size)
        for _ in range(rng.choice([1, 1, 4, 64])):
            at = entry["offset"] + rng.randrange(entries) * size
            number = rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randrange(-400, 400)
            body[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")
        data = bytes(body[entry["offset"] : entry["offset"] + entry["bytes"]])
        entry["crc"] = zlib.crc32(data)
    return mended(bytes(body), json.dumps(footer).encode())


def crafted_footer(rng: random.Random, target: Target) -> bytes:
    """Change what the footer says, and make its checksum fit."""
    footer = target.footer
    end = len(target.sound) - TRAILER.size - TRAILER.unpack(target.sound[-TRAILER.size :])[0]
    junk: list[Any] = [*NUMBERS, None, "x", [], {}, 1.5, float("nan"), float("inf"), True, [1, 2], 10**30]
    name = rng.choice(list(footer["arrays"]))
    entry = footer["arrays"][name]
    way = rng.randrange(6)
    if way == 0:
        entry["shape"][rng.randrange(len(entry["shape"]))] = rng.choice(junk)
    elif way == 1:
        entry[rng.choice(["offset", "bytes", "crc", "shape"])] = rng.choice(junk)
    elif way == 2:
        entry["dtype"] = rng.choice(["<i8", "<i4", "|u1", "<f4", "<f2", "<f8", "|O", "<U9", "", 3, None])
    elif way == 3:
        footer["info"][rng.choice([*footer["info"], "first_wide"])] = rng.choice([*junk, [1e9, 0.0], [0, 0]])
    elif way == 4:
        other = rng.choice(list(footer["arrays"]))
        footer["arrays"][name], footer["arrays"][other] = footer["arrays"][other], entry
        footer["arrays"].pop(rng.choice([name, other, "none"]), None)
    else:
        text = bytearray(json.dumps(footer).encode())
        for _ in range(rng.choice([1, 2, 8])):
            text[rng.randrange(len(text))] = rng.choice(b'0123456789[]{},:"-eE.\x00\xff')
        return mended(target.sound[:end], bytes(text))
    return mended(target.sound[:end], json.dumps(footer).encode())


DAMAGES: list[Callable[[random.Random, Target], bytes]] = [
    flipped, resized, crafted_values, crafted_values, crafted_values, crafted_footer, crafted_footer,
]  # fmt: skip


# -- one input -----------------------------------------------------------------------------------------------


def _numbers_of(data: bytes, otherwise: tuple[int, int, int, int]) -> tuple[Any, Any, int, int]:
    """Return what a catalogue would have to say for the damaged file to be taken."""
    try:
        length, crc = TRAILER.unpack(data[-TRAILER.size :])[:2]
        info = json.loads(data[-TRAILER.size - length : -TRAILER.size])["info"]
        items, elements = info["items"], info["elements"]
        if type(items) is int and type(elements) is int and max(items, elements) < 2**63:
            return items, elements, len(data), crc
        return *otherwise[:2], len(data), crc
    except Exception:
        return otherwise


def try_input(seed: int, targets: list[Target]) -> str:
    """Damage one file, use the index around it, and return what kind of answer came; raise on a finding."""
    rng = random.Random(seed)
    target = rng.choice(targets)
    data = rng.choice(DAMAGES)(rng, target)
    target.segment.write_bytes(data)
    row = _numbers_of(data, target.row) if rng.random() < 0.9 else target.row
    db = sqlite3.connect(target.root / "catalog.sqlite", isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("UPDATE segments SET items = ?, elements = ?, bytes = ?, crc = ?", row)
    db.close()
    query = np.random.default_rng(seed % 50).normal(size=(2, 9)).astype(np.float32)
    answers = Counter[str]()

    def attempt(action: Callable[[], Any]) -> None:
        try:
            action()
            answers["ok"] += 1
        except SetNetError:
            answers["error"] += 1

    def use() -> None:
        verify = rng.choice(["open", "open", "open", "full"])
        with SetIndex.open(target.root, read_only=True, verify=verify) as index:
            actions: list[Callable[[], Any]] = [
                lambda: index.search(query, k=3, threads=1),
                lambda: index.search(query, k=3, mode="set", threads=1),
                lambda: index.search(query, k=3, mode="fast", threads=1),
                lambda: index.search(query, k=200, mode=rng.choice(["exact", "set", "fast"]), threads=1),
                lambda: index.search(query, k=3, where={"year": [1, 2]}, threads=1),
                lambda: index.search(["anna", "ben"], k=5, mode="tags"),
                lambda: list(index.items()),
                lambda: index.elements("item 5"),
                index.check,
            ]
            for action in rng.sample(actions, 4):
                attempt(action)
            if rng.random() < 0.02:
                attempt(lambda: index.search(query, k=3, without=query[:1], only=True, matching="optimal"))

    signal.alarm(SECONDS_PER_INPUT)
    try:
        attempt(use)
        if rng.random() < 0.01:
            attempt(lambda: _compact_copy(target.root))
    finally:
        signal.alarm(0)
        target.segment.write_bytes(target.sound)
    return "+".join(sorted(answers))


def _compact_copy(root: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(root, Path(folder, "copy"))
        with SetIndex.open(Path(folder, "copy")) as index:
            index.add(["more"], np.ones((1, 9), np.float32), [1])
            index.compact()


# -- the program ---------------------------------------------------------------------------------------------


def sanitized(folder: Path) -> dict[str, str]:
    """Build a copy of the package with sanitizers; return the environment that runs it."""
    import setnet

    package = folder / "setnet"
    shutil.copytree(Path(setnet.__file__).parent, package, ignore=shutil.ignore_patterns("*.so"))
    kernels = package / "index" / "kernels"
    compiler = os.environ.get("CC", "gcc")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-g", "-O1", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all",
         f"-I{sysconfig.get_path('include')}", *map(str, sorted(kernels.glob("*.c"))),
         "-o", str(kernels / f"_kernels{sysconfig.get_config_var('EXT_SUFFIX')}")],
        check=True,
    )  # fmt: skip
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    }


def isolated(seed: int, targets: list[Target]) -> str:
    """Try one input in a process of its own, and say how that ended."""
    child = os.fork()
    if child == 0:
        try:
            try_input(seed, targets)
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return "other exception" if os.WEXITSTATUS(status) else "ok or error"


def run(first: int, inputs: int, seconds: float, *, isolate: bool = False) -> tuple[Counter[str], float]:
    """Try inputs until their number or the time is reached; return the kinds of answers and the rate."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"no answer after {SECONDS_PER_INPUT} s")

    before = signal.signal(signal.SIGALRM, late)
    kinds, start = Counter[str](), time.monotonic()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="setnet-fuzz-", dir=MEMORY) as folder,
            np.errstate(all="ignore"),
        ):
            targets = make_targets(Path(folder))
            for seed in range(first, first + inputs):
                try:
                    kinds[(isolated if isolate else try_input)(seed, targets)] += 1
                except Exception as error:
                    raise AssertionError(f"input {seed}: {error!r}") from error
                if time.monotonic() - start > seconds:
                    break
    finally:
        signal.signal(signal.SIGALRM, before)
    return kinds, kinds.total() / (time.monotonic() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="seed of the first input")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--sanitize", action="store_true", help="build and use kernels with ASan and UBSan")
    parser.add_argument("--isolate", action="store_true", help="one process per input, to count crashes")
    options = parser.parse_args()
    if options.sanitize:
        with tempfile.TemporaryDirectory(prefix="setnet-sanitized-") as folder:
            command = [argument for argument in sys.argv if argument != "--sanitize"]
            return subprocess.run([sys.executable, *command], env=sanitized(Path(folder))).returncode
    try:
        kinds, rate = run(options.first, options.inputs, options.seconds, isolate=options.isolate)
    except AssertionError:
        traceback.print_exc()
        return 1
    print(f"{kinds.total()} inputs at {rate:.0f}/s: {dict(kinds)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
