"""A synthetic world of the paper's size, written to an index batch by batch, the same for the same seed."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
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
    ingest_seconds: float

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
    rows = centres + rng.normal(size=centres.shape).astype(np.float32) * np.float32(NOISE / np.sqrt(DIM))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def make(folder: Path, items: int, seed: int = 7, set_bits: int = 32) -> World:
    """Build the world, or take the one that lies at ``folder`` already."""
    path = folder / f"world-{items}-{seed}-{set_bits}"
    rng = np.random.default_rng(seed)
    identities = rng.normal(size=(IDENTITIES, DIM)).astype(np.float32)
    identities /= np.linalg.norm(identities, axis=1, keepdims=True)
    done = path / "made.json"
    if not done.exists():
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    counts, who, seconds = [], [], 0.0
    index = None if done.exists() else SetIndex.create(path / "index", DIM, set_bits=set_bits)
    for at in range(0, items, BATCH):
        n = min(BATCH, items - at)
        part = rng.choice([2, 3, 4, 5, 6], n, p=[0.58, 0.22, 0.10, 0.05, 0.05])
        part[part == 6] += rng.poisson(1.0, int((part == 6).sum()))
        members = rng.integers(0, IDENTITIES, part.sum())
        counts.append(part)
        who.append(members)
        drawn = np.random.default_rng([seed, at])
        if index is not None:
            rows = faces(drawn, identities[members])
            began = time.perf_counter()
            index.add([f"photo-{i}" for i in range(at, at + n)], rows, part)
            seconds += time.perf_counter() - began
    if index is not None:
        index.compact()  # as after any large load; not part of the time of adding
        index.close()
        done.write_text(json.dumps({"seconds": seconds}))
    else:
        seconds = json.loads(done.read_text())["seconds"]
    return World(path / "index", items, np.concatenate(counts), np.concatenate(who), identities, seconds)
