"""Searches of one index in several worlds, cold: how many times as long as reading a byte per dimension.

    python benchmarks/difficulty.py                               # the worlds, of 200,000 items
    python benchmarks/difficulty.py --worlds real --only exact    # some of it
    SETNET_KERNELS=avx2 python benchmarks/difficulty.py           # with other kernels
    python benchmarks/difficulty.py --write docs/performance.md   # as a section of the page

Before every search a large buffer is read, so that nothing of the index is left in the caches, and every
search has another query. The process has read all vectors once: what is read for the first time is compared
with its checksum. All figures are medians. *read* is the time of one pass over a byte per dimension,
measured between the searches; *recall* is the share of the ten best of exact search that a search finds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import kernel_level
from setnet.evaluate import LFW_LIKE
from setnet.heads import unit
from setnet.train import VirtualPeople
from support.performance_page import machine, write_section

DIM = 128
BATCH = 50_000
QUERIES = 41
PARTS = ("exact", "filters", "fast", "threads")
WORLDS = ("real", "hard", "random", "wide", "heads")
Floats = NDArray[np.float32]


class World:
    """Items of 2 to 6 faces, and what a new face of somebody looks like.

    ``real``: people drawn from the moments of real descriptors. ``hard``: the same people, whose faces vary
    1.7 times as much. ``random``: no two faces belong together, all directions are alike. ``wide``: the same in
    1,024 dimensions. ``heads``: 60,000 items of ``real`` with set vectors by the head `sface-512`.
    """

    def __init__(self, kind: str, items: int, seed: int = 11) -> None:
        rng = np.random.default_rng(seed)
        items = {"wide": items // 8, "heads": min(items, 60_000)}.get(kind, items)
        self.kind, self.items, self.dim = kind, items, 1024 if kind == "wide" else DIM
        self.name = f"{kind}-{items}" + f"-seed-{seed}" * (seed != 11)
        self.model = VirtualPeople.load(LFW_LIKE).harder(1.7 if kind == "hard" else 1.0)
        self.people = self.model.people(rng, max(1000, items // 18))
        self.counts = rng.choice([2, 3, 4, 5, 6], items, p=[0.58, 0.22, 0.10, 0.05, 0.05])
        self.who = rng.integers(0, len(self.people), self.counts.sum())

    def faces(self, rng: np.random.Generator, who: NDArray[np.int64]) -> Floats:
        """Return a new face of each of some people."""
        if self.kind in ("random", "wide"):
            return np.asarray(unit(rng.standard_normal((len(who), self.dim), dtype=np.float32)))
        return self.model.faces(rng, self.people, who)

    def index(self, folder: Path, lists: bool) -> SetIndex:
        """Build the index with or without inverted lists, or open the one that is there."""
        path = folder / f"{self.name}{'-lists' * lists}"
        if not path.exists():
            making = path.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            head = "sface-512" if self.kind == "heads" else "none"
            with SetIndex.create(making, self.dim, head=head) as index:
                starts = np.concatenate([[0], np.cumsum(self.counts)])
                for at in range(0, self.items, BATCH):
                    end = min(at + BATCH, self.items)
                    rng = np.random.default_rng([3, at])
                    rows = self.faces(rng, self.who[starts[at] : starts[end]])
                    drawn = zip(rng.integers(0, 1000, end - at), rng.integers(0, 30, end - at), strict=True)
                    details = [{"day": int(day), "place": f"place {place}"} for day, place in drawn]
                    index.add([str(i) for i in range(at, end)], rows, self.counts[at:end], details)
                index.compact(lists=lists)
            making.rename(path)
        return SetIndex.open(path, read_only=True)

    def queries(self, size: int, present: bool) -> list[Floats]:
        """Return faces of people who are in some item together, or of people in none."""
        rng = np.random.default_rng([size, present])
        if self.kind in ("random", "wide"):
            return [self.faces(rng, np.zeros(size, np.int64)) for _ in range(QUERIES)]
        if not present:
            others = self.model.people(rng, size * QUERIES)
            drawn = self.model.faces(rng, others, np.arange(size * QUERIES))
            return list(drawn.reshape(QUERIES, size, DIM))
        starts = np.cumsum(self.counts) - self.counts
        items = rng.choice(np.flatnonzero(self.counts >= min(size, 6)), QUERIES, replace=False)
        named = [np.resize(self.who[starts[i] : starts[i] + self.counts[i]], size) for i in items]
        return [self.faces(rng, who) for who in named]


@dataclass(frozen=True)
class Case:
    """A kind of search: what it is called, and its queries and options, those of each turn."""

    work: str
    index: SetIndex
    queries: list[Floats]
    options: Callable[[int], dict[str, Any]]
    with_recall: bool = False


def cases(world: World, parts: list[str], folder: Path) -> Iterator[Case]:
    """Yield all kinds of searches in a world."""
    plain = world.index(folder, lists=False)
    if world.kind == "wide":
        yield Case("exact Q=3 k=100, absent", plain, world.queries(3, False), lambda _: {"k": 100})
        return
    if world.kind == "heads":
        two = world.queries(2, True)
        yield Case("exact Q=2 k=100, there", plain, two, lambda _: {"k": 100})
        yield Case("set vectors Q=2 k=100, there", plain, two, lambda _: {"k": 100, "mode": "set"})
        return
    for present in (True, False) if world.kind != "random" else (False,):
        who = "there" if present else "absent"
        few = {size: world.queries(size, present) for size in (1, 2, 3, 8)}
        if "exact" in parts:
            for size in (2, 3):
                yield Case(f"exact Q={size} k=100, {who}", plain, few[size], lambda _: {"k": 100})
            yield Case(f"exact Q=8 k=1000, {who}", plain, few[8], lambda _: {"k": 1000})
        if "filters" in parts:
            two = few[2]
            yield Case(f"only Q=2 k=1000, {who}", plain, two, lambda _: {"k": 1000, "only": True})
            yield Case(f"where 3 %, remembered, {who}", plain, two, lambda _: {"where": {"place": "place 3"}})
            yield Case(f"where 50 %, new, {who}", plain, two, lambda t: {"where": {"day": {">=": 480 + t}}})
            yield Case(
                f"where two conditions, new, {who}", plain, two,
                lambda t: {"where": {"day": {">=": 480 + t}, "place": {"!=": f"place {t % 30}"}}},
            )  # fmt: skip
        if "fast" in parts:
            listed = world.index(folder, lists=True)
            for size in (1, 2, 3):
                for share in (0.9, 0.95, 0.98):
                    fast = {"k": 10, "mode": "fast", "recall": share}
                    name = f"fast Q={size}, recall {share}, {who}"
                    yield Case(name, listed, few[size], lambda _, o=fast: o, True)
        if "threads" in parts:
            # not a search: what two threads can gain at most
            yield Case("reading, two threads", plain, [], lambda _: {"threads": 2})
            yield Case(f"exact Q=2, two threads, {who}", plain, few[2], lambda _: {"k": 100, "threads": 2})


class Stopwatch:
    """Measures searches between passes over memory, all of them cold."""

    def __init__(self, size: int, turns: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._memory = np.ones(size // 8, np.uint64)
        self.read, self._clock = self._memory.max, clock
        self._others = np.ones(1 << 25, np.uint64)  # 256 MB
        self._turns = turns
        halves = np.array_split(self._memory, 2)
        self._two = ThreadPoolExecutor(2)
        self._read_by_two = lambda: list(self._two.map(np.max, halves))

    def cold(self, run: Callable[[], Any], clock: Callable[[], float] | None = None) -> float:
        """Return the milliseconds that a call takes when the caches hold something else."""
        clock = clock or self._clock
        self._others.max()
        began = clock()
        run()
        return (clock() - began) * 1e3

    def measure(self, case: Case) -> tuple[float, float, str]:
        """Return the medians of reading and of searching in milliseconds, and the recall if it is asked for."""
        read, took = [], []
        for turn in range(-1, self._turns):  # the first one opens files and is not counted
            options = {"threads": 1, **case.options(turn)}
            clock = time.perf_counter if options["threads"] > 1 else self._clock
            read.append(self.cold(self.read, clock))
            run = (
                partial(case.index.search, case.queries[turn], **options)
                if case.queries
                else self._read_by_two
            )
            took.append(self.cold(run, clock))
        recall = f"recall@10 {recall_of(case):.3f}" if case.with_recall else ""
        return float(np.median(read[1:])), float(np.median(took[1:])), recall


def recall_of(case: Case) -> float:
    """Return the share of exact search's ten best that a search finds."""
    shares = []
    for turn, query in enumerate(case.queries):
        best = {hit.id for hit in case.index.search(query, k=10)}
        found = {hit.id for hit in case.index.search(query, **case.options(turn))}
        shares.append(len(best & found) / len(best))
    return float(np.mean(shares))


def main() -> None:
    """Parse, run the worlds, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "setnet-worlds")
    parser.add_argument(
        "--processor-time", action="store_true", help="of one thread, for a machine that does other work too"
    )
    parser.add_argument("--write", type=Path, help="write the table to this page, as a section of its own")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    lines = [
        f"## Worlds, kernels {kernel_level()}",
        "",
        f"Written by `python {' '.join(sys.argv)}` on {machine('numpy')}. One thread unless said, cold caches, "
        "another query each time, medians of "
        f"{'processor' if args.processor_time else 'wall'} time; *read*: one pass over a byte per dimension.",
        "",
        "| world | search | ms | read ms | ratio | |",
        "|---|---|---|---|---|---|",
    ]
    for kind in args.worlds:
        world = World(kind, args.items)
        clock = time.thread_time if args.processor_time else time.perf_counter
        stopwatch = Stopwatch(int(world.counts.sum()) * world.dim, args.repeats, clock)
        for case in cases(world, args.only, args.folder):
            case.index.contents()  # so that all checksums have been compared
            read, took, recall = stopwatch.measure(case)
            line = f"| {kind} | {case.work} | {took:.2f} | {read:.2f} | {took / read:.2f} x | {recall} |"
            print(line, flush=True)
            lines.append(line)
    if args.write:
        write_section(args.write, f"worlds {kernel_level()}", "\n".join(lines))


if __name__ == "__main__":
    main()
