"""A synthetic world of the paper's size, written to an index batch by batch, the same for the same seed."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet import SetIndex

DIM = 128
IDENTITIES = 30_000
NOISE = 0.75  # same person: similarity about 0.64 +- 0.06; others 0.00 +- 0.09
BATCH = 50_000

Floats = NDArray[np.float32]


@dataclass
class World:
    """An index on disk, and who is in which item."""

    path: Path
    items: int
    counts: NDArray[np.int64]
    who: NDArray[np.int64]
    identities: Floats
    built: BuildFigures

    def queries(self, people: int, how_many: int, seed: int) -> tuple[list[Floats], NDArray[np.int64]]:
        """New faces of people who do appear together in some item, and who they are."""
        rng = np.random.default_rng(seed)
        starts = np.cumsum(self.counts) - self.counts
        items = rng.choice(np.flatnonzero(self.counts >= people), how_many, replace=False)
        named = np.stack([self.who[starts[i] : starts[i] + people] for i in items])
        return [faces(rng, self.identities[row]) for row in named], named

    def relevance(self, named: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many of the named people each item holds."""
        owner = np.repeat(np.arange(self.items), self.counts)
        found = np.zeros(self.items, np.int64)
        for person in np.unique(named):
            found[np.unique(owner[self.who == person])] += 1
        return found


def faces(rng: np.random.Generator, centres: Floats) -> Floats:
    """One noisy face for each row of centres, at unit length."""
    rows = rng.standard_normal(centres.shape, dtype=np.float32)
    rows *= np.float32(NOISE / np.sqrt(DIM))
    rows += centres
    rows /= np.sqrt(np.einsum("nd,nd->n", rows, rows))[:, None]
    return rows


def sizes(rng: np.random.Generator, items: int) -> NDArray[np.int64]:
    """Numbers of faces of items: two to a dozen, 2.8 on average."""
    drawn = rng.choice([2, 3, 4, 5, 6], items, p=[0.58, 0.22, 0.10, 0.05, 0.05])
    drawn[drawn == 6] += rng.poisson(1.0, int((drawn == 6).sum()))
    return np.asarray(drawn, np.int64)


def make(folder: Path, items: int, seed: int = 7, set_bits: int = 32, precision: str = "float32") -> World:
    """Build the world, or take the one that lies at ``folder`` already."""
    path = folder / f"world-{items}-{seed}-{set_bits}-{precision}"
    rng = np.random.default_rng(seed)
    identities = rng.normal(size=(IDENTITIES, DIM)).astype(np.float32)
    identities /= np.linalg.norm(identities, axis=1, keepdims=True)
    done = path / "made.json"
    if not done.exists():
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    counts, who = [], []
    built = None if done.exists() else Build(path / "index", set_bits, precision)
    for at in range(0, items, BATCH):
        part = sizes(rng, min(BATCH, items - at))
        members = rng.integers(0, IDENTITIES, part.sum(), dtype=np.int32)
        counts.append(part)
        who.append(members)
        if built:
            built.add(at, faces(np.random.default_rng([seed, at]), identities[members]), part)
    if built:
        done.write_text(json.dumps(asdict(built.finish())))
    figures = BuildFigures(**json.loads(done.read_text()))
    return World(path / "index", items, np.concatenate(counts), np.concatenate(who), identities, figures)


@dataclass
class BuildFigures:
    """What building a world took: seconds of adding and of compacting, and the most memory of its own."""

    adding: float = 0.0
    compacting: float = 0.0
    anonymous_mb: float = 0.0


class Build:
    """An index being filled, with a thread that watches the memory."""

    def __init__(self, path: Path, set_bits: int, precision: str) -> None:
        self._figures = BuildFigures()
        self._index = SetIndex.create(path, DIM, set_bits=set_bits, precision=precision)
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
            held = int(status["RssAnon"].split()[0]) / 1024
            self._figures.anonymous_mb = max(self._figures.anonymous_mb, held)

    def add(self, first: int, rows: Floats, counts: NDArray[np.int64]) -> None:
        """Add a batch; only this is counted as adding."""
        names = [f"photo-{i}" for i in range(first, first + len(counts))]
        began = time.perf_counter()
        self._index.add(names, rows, counts)
        self._figures.adding += time.perf_counter() - began

    def finish(self) -> BuildFigures:
        """Compact, as after any large load, and close."""
        began = time.perf_counter()
        self._index.compact()
        self._figures.compacting = time.perf_counter() - began
        self._index.close()
        self._ended.set()
        return self._figures
