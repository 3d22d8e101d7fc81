"""How long each kernel takes at each instruction set that this machine has, beside reading the same bytes once.

The kernels take turns with the reading in one process, on one thread and on random codes of 549,000 photos with
1.5 million faces. Times are processor time, the least of the turns: other work on the machine shows in them least.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setnet.engine.kernels import backend, lanes
from support.performance_page import machine, write_section

ITEMS, DIM, SET_BITS_DIM = 549_000, 128, 1024
SECTION = """## Kernels

Each instruction set has its own kernels; the fastest that the processor has is chosen at start, and
`SETNET_KERNELS=` with one of these names chooses another:

| level | processors |
|---|---|
| `avx512` | x86 with AVX-512 VNNI: Intel servers from Cascade Lake on, AMD from Zen 4 on |
| `avx2` | nearly every x86 since 2013 |
| `neon_dot` | 64-bit ARM with the dot product: Apple silicon, Graviton 2 and later, Raspberry Pi 5 |
| `neon` | every other 64-bit ARM: Raspberry Pi 3 and 4, Graviton 1 |
| `portable` | everything else with a C compiler |
| `reference` | NumPy, where setnet was installed without a C compiler |

Written by `python benchmarks/kernels.py --items {items} --repeats {repeats} --write docs/performance.md` on {machine}.
The levels took turns in one process on one thread; milliseconds of processor time, the least of {repeats} turns, and the
ratio to reading the same bytes once. Sigmoid and sum for each photo are included, ranking is not. Levels that this
machine does not have are not in the table: those of ARM are checked against the reference under emulation
(`make soak`), which says nothing about their speed.

{table}
"""
NOTHING, NO_ROWS = np.empty(0, np.uint8), np.empty(0, np.int64)


@dataclass(frozen=True)
class Work:
    """Codes that a kernel scans: what they are, and the arguments of the scan up to the query."""

    name: str
    bits: int
    codes: Any
    scales: Any
    row_start: Any
    blocks: int
    width: int  # bytes of a query row
    fine: tuple[Any, Any] = (NOTHING, NOTHING)  # what nine bits read besides

    @property
    def bytes(self) -> int:
        """What a scan reads of the codes."""
        return int(self.codes.nbytes + self.scales.nbytes + sum(array.nbytes for array in self.fine))

    def scan(self, rows: int) -> Callable[[], Any]:
        """Return a scan for a query of so many rows by the kernels in use."""
        rng = np.random.default_rng(1)
        query = rng.integers(0, 64, (rows, self.width)).astype(np.int8)
        zero, one = np.zeros(rows, np.float32), np.ones(rows, np.float32)
        out = np.empty(self.blocks * lanes.LANES, np.float32)
        terms = np.stack([one * 1e-5, zero, zero, one, one, zero, zero])
        args = (self.bits, self.codes, self.scales, *self.fine, self.row_start, self.blocks,
                self.codes.shape[1], query, np.zeros(rows, np.int32), terms, 20.0, 0.3, 0.0,
                np.zeros(rows, np.int64), np.arange(self.blocks), out, 0, len(out))  # fmt: skip
        return lambda: backend.kernels.scan(*args)


def works(items: int) -> list[Work]:
    """Return the codes of so many photos in all the forms that are scanned."""
    rng = np.random.default_rng(0)
    layout = lanes.layout_of(1 + rng.poisson(1.8, items))
    rows, blocks = int(layout.row_start[-1]), layout.blocks
    whole = -(-items // lanes.LANES)

    def random(*shape: int) -> Any:
        return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)

    scales = rng.random((rows, lanes.LANES), np.float32)
    fives, fine = random(rows, DIM // 32 * 5, lanes.LANES, 4), random(rows, DIM // 32 * 4, lanes.LANES, 4)
    norms = (rng.random((rows, 3, lanes.LANES), np.float32).view(np.uint32) >> 16).astype(np.uint16)
    factors = (scales.view(np.uint32) >> 16).astype(np.uint16)
    bits, start = random(rows, DIM // 8, lanes.LANES), layout.row_start
    return [
        Work("faces, 5 bits, 128-D", 5, fives, norms, start, blocks, DIM),
        Work("faces, 9 bits, 128-D", 9, fives, norms, start, blocks, DIM, (fine, norms[:, 0].copy())),
        Work("faces, 1 bit, 128-D", 1, bits, factors, start, blocks, DIM * 4),
        Work("set vectors, 8 bits, 128-D", 8, random(whole, DIM // 4, lanes.LANES, 4),
             scales[:whole], NO_ROWS, whole, DIM),
        Work("set vectors, 1 bit, 1,024-D", 1, random(whole * lanes.LANES, SET_BITS_DIM // 8),
             scales[:whole].reshape(-1), NO_ROWS, whole, SET_BITS_DIM * 4),
    ]  # fmt: skip


def least(turns: int, runs: dict[Any, Callable[[], Any]]) -> dict[Any, float]:
    """Return the least processor time of each run in milliseconds; they take turns."""
    times: dict[Any, list[float]] = {key: [] for key in runs}
    for _ in range(turns):
        for key, run in runs.items():
            began = time.process_time()
            run()
            times[key].append((time.process_time() - began) * 1e3)
    return {key: min(taken) for key, taken in times.items()}


def at_level(level: str, run: Callable[[], Any]) -> Callable[[], Any]:
    """Return the run with the kernels of a level."""

    def chosen() -> None:
        backend.use(level)
        run()

    return chosen


def table(items: int, turns: int) -> str:
    """Measure, and return a table with one row for each form of codes and level."""
    levels = backend.kernels.levels()
    lines = ["| codes | level | Q = 1 | Q = 2 | Q = 3 |", "|---|---|---|---|---|"]
    for work in works(items):
        read = np.ones(work.bytes // 8, np.uint64)
        runs = {(level, q): at_level(level, work.scan(q)) for level in levels for q in (1, 2, 3)}
        times = least(turns, {"read": read.max, **runs})
        lines.append(f"| {work.name} | reading {work.bytes / 1e6:.0f} MB once | {times['read']:.2f} ms | | |")
        for level in levels:
            cells = [f"{times[level, q]:.2f} ms, {times[level, q] / times['read']:.1f} x" for q in (1, 2, 3)]
            lines.append(f"| {work.name} | {level} | {' | '.join(cells)} |")
        print("\n".join(lines[-1 - len(levels) :]), flush=True)
    return "\n".join(lines)


def main() -> None:
    """Measure, print and, if asked to, write the section of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=549_000)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--write", type=Path, help="write the section into this Markdown file")
    args = parser.parse_args()
    measured_on = machine()
    section = SECTION.format(items=args.items, repeats=args.repeats, machine=measured_on,
                             table=table(args.items, args.repeats))  # fmt: skip
    if args.write:
        write_section(args.write, "kernels", section)


if __name__ == "__main__":
    main()
