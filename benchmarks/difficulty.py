"""Exact and fast search in easy, hard and random worlds, for people who are there and people who are not.

    python benchmarks/difficulty.py                              # three worlds of 549,000 items
    python benchmarks/difficulty.py --write docs/performance.md  # as a section of the page
    SETNET_KERNELS=portable python benchmarks/difficulty.py      # with other kernels

In every world contenders take turns. *read* is the ratio to one pass over a byte per dimension, *recall* the
share of the ten best of exact search that a contender finds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import faiss
import numpy as np
from numpy.typing import NDArray

import peers
from performance_page import machine, write_section
from race import Book, reader
from setnet import SetIndex
from setnet.engine import kernel_level

DIM = 128
PEOPLE = 30_000
BATCH = 50_000
TURNS = 40  # queries of a kind
Floats = NDArray[np.float32]


def unit(rows: NDArray[Any]) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


class World:
    """Items of 2 to 6 faces, and what a new face of somebody looks like.

    ``easy``: faces of one person are 0.64 alike, of two people 0.00 +- 0.09, as in `world.py`. ``hard``: 0.60
    alike, and people differ in 24 of 128 dimensions only, so that some of them are as alike as one person's
    faces are. ``random``: no two faces belong together.
    """

    def __init__(self, kind: str, items: int) -> None:
        rng = np.random.default_rng(11)
        self.kind, self.items = kind, items
        axes = 24 if kind == "hard" else DIM
        self.noise = {"easy": 0.75, "hard": 0.816, "random": 0.0}[kind]
        self.people = np.zeros((PEOPLE, DIM), np.float32)
        self.people[:, :axes] = unit(rng.normal(size=(PEOPLE, axes)))
        turn = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0].astype(np.float32)
        self.people = self.people @ turn
        self.counts = rng.choice([2, 3, 4, 5, 6], items, p=[0.58, 0.22, 0.10, 0.05, 0.05])
        self.who = rng.integers(0, PEOPLE, self.counts.sum())

    def faces(self, rng: np.random.Generator, who: NDArray[np.int64]) -> Floats:
        """Return a new face of each of some people."""
        scatter = rng.normal(size=(len(who), DIM)).astype(np.float32)
        if self.kind == "random":
            return unit(scatter)
        return unit(self.people[who] + scatter * np.float32(self.noise / np.sqrt(DIM)))

    def index(self, folder: Path, lists: bool) -> SetIndex:
        """Build the index with or without inverted lists, or open the one that is there."""
        path = folder / f"{self.kind}-{self.items}{'-lists' * lists}"
        if not path.exists():
            making = path.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            with SetIndex.create(making, DIM, head="none") as index:
                starts = np.concatenate([[0], np.cumsum(self.counts)])
                for at in range(0, self.items, BATCH):
                    end = min(at + BATCH, self.items)
                    who = self.who[starts[at] : starts[end]]
                    names = [str(i) for i in range(at, end)]
                    index.add(names, self.faces(np.random.default_rng([3, at]), who), self.counts[at:end])
                index.compact(lists=lists)
            making.rename(path)
        return SetIndex.open(path, read_only=True)

    def queries(self, size: int, present: bool) -> list[Floats]:
        """Return faces of people who are in some item together, or of people in none."""
        rng = np.random.default_rng([size, present])
        if not present:
            return [unit(rng.normal(size=(size, DIM))) for _ in range(TURNS)]
        starts = np.cumsum(self.counts) - self.counts
        items = rng.choice(np.flatnonzero(self.counts >= size), TURNS, replace=False)
        return [self.faces(rng, self.who[starts[i] : starts[i] + size]) for i in items]


class Peers:
    """faiss over the same faces: all of 16 bytes each, or some of 32, then greedy matching."""

    def __init__(self, index: SetIndex, world: World) -> None:
        elements = np.concatenate([s.elements for s in index._reader.snapshot().segments])
        offsets = np.concatenate([[0], np.cumsum(world.counts)])
        owner = np.repeat(np.arange(world.items), world.counts)
        more = (elements, offsets, owner, index.logistic.w, index.logistic.b)
        self.all = {}
        for name, probes in (("PQ32x4fs", None), ("IVF4096,PQ64x4fs", 128)):
            made = faiss.index_factory(DIM, name, faiss.METRIC_INNER_PRODUCT)
            made.train(elements[:: max(1, len(elements) // 200_000)])
            made.add(elements)
            if probes:
                made.nprobe = probes
            self.all[f"faiss {name} + greedy"] = peers.elements_then_greedy(made, *more)


def recall(exact: list[set[int]], found: Callable[[int], set[int]]) -> str:
    """Return the share of exact search's ten best that another search finds."""
    return (
        f"recall@10 {np.mean([len(best & found(t)) / max(1, len(best)) for t, best in enumerate(exact)]):.3f}"
    )


def race(book: Book, world: World, folder: Path) -> None:
    """Let all contenders answer all kinds of queries in one world."""
    plain, listed = world.index(folder, lists=False), world.index(folder, lists=True)
    others = Peers(plain, world).all
    read = reader(int(world.counts.sum()) * DIM)
    for size in (1, 2, 3):
        for present in (True, False) if world.kind != "random" else (False,):
            queries = world.queries(size, present)

            def ids(index: SetIndex, turn: int, queries: list[Floats] = queries, **options: Any) -> set[int]:
                hits = index.search(queries[turn % TURNS], k=10, threads=1, **options)
                return {int(hit.id) for hit in hits}

            ours: dict[str, Callable[[int], Any]] = {
                "setnet exact": lambda t, ids=ids: ids(plain, t),
                "setnet fast": lambda t, ids=ids: ids(plain, t, mode="fast"),
                "setnet fast, 100 candidates": lambda t, ids=ids: ids(plain, t, mode="fast", candidates=100),
            } | {
                f"setnet fast, {probes} probes": lambda t, p=probes, ids=ids: ids(
                    listed, t, mode="fast", probes=p
                )
                for probes in (16, 64, 256)
            }
            theirs = {
                name: lambda t, f=found, q=queries: set(f(q[t % TURNS], 10).tolist())
                for name, found in others.items()
            }
            best = [ids(plain, t) for t in range(TURNS)]
            everyone = ours | theirs
            quality = {name: recall(best, run) for name, run in everyone.items()}
            kind = "there" if present else "nobody there"
            work = f"{world.kind}, Q = {size}, {kind}"
            book.race("worlds", work, {(name, 1): run for name, run in everyone.items()}, read, quality)


def section(book: Book, command: str) -> str:
    """Return the rows as a section of the page."""
    lines = [
        "## Worlds: easy, hard and random",
        "",
        f"Written by `{command}` on {machine('numpy', 'faiss-cpu')}.",
        "Top 10, one thread; minimum and median over the turns; *read*: against one pass over a byte per dimension.",
        "",
        "| world | who | min ms | median ms | read | |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.work} | {r.who} | {r.minimum_ms:.2f} | {r.median_ms:.2f} | {r.read_ratio:.2f} x | {r.quality} |"
        for r in book.rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Parse, run the worlds, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=549_000)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--worlds", nargs="*", default=["easy", "hard", "random"])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "setnet-worlds")
    parser.add_argument("--write", type=Path, help="write the table to this page, as a section of its own")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    book = Book(args.repeats)
    for kind in args.worlds:
        race(book, World(kind, args.items), args.folder)
    if args.write:
        write_section(args.write, f"worlds {kernel_level()}", section(book, "python " + " ".join(sys.argv)))


if __name__ == "__main__":
    main()
