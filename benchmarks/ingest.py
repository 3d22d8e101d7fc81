"""How fast items enter an index, by the size of the batches they come in.

    python benchmarks/ingest.py [--items 300000]

Faces are drawn once and given again and again: the engine does not know. Each line is a new index. Elapsed
time counts what `SetIndex.add` takes, merges included; processor time is what it costs a machine that has
other things to do.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from setnet import SetIndex
from support import world as worlds

BATCHES = (1_000, 5_000, 20_000, 50_000, 549_000)
MERGED = 1_200_000  # items: more than make the largest segment that additions merge
POOL = 50_000  # items whose faces are drawn


def rows(folder: Path, items: int = 549_000) -> Iterator[tuple[str, str, float, str]]:
    """Yield where, what, milliseconds and a remark for each batch size and precision."""
    rng = np.random.default_rng(1)
    counts = np.resize(worlds.sizes(rng, POOL), items)
    ends = np.cumsum(counts)
    drawn = worlds.faces(rng, rng.standard_normal((int(ends[min(items, POOL) - 1]), worlds.DIM)).astype("f4"))
    for precision in ("float32", "float16"):
        given = drawn.astype(precision)
        for batch in BATCHES:
            elapsed, processor, stored = _added(
                folder / "ingest", given, counts, min(batch, items), precision
            )
            remark = f"{ends[-1] / elapsed:,.0f} elements/s; {ends[-1] / processor:,.0f} per second of processor; {stored}"
            yield f"N = {items}, {precision}", f"batches of {min(batch, items)}", elapsed * 1e3, remark
            if batch >= items:
                break
    counts = np.resize(counts, MERGED)
    elapsed, _, stored = _added(folder / "ingest", drawn, counts, 50_000, "float32")
    yield f"N = {MERGED}, float32", "batches of 50000", elapsed * 1e3, stored


def _added(
    path: Path, faces: worlds.Floats, counts: np.ndarray, batch: int, precision: str
) -> tuple[float, float, str]:
    """Add all items to a new index; return elapsed and processor time, and what it holds then."""
    shutil.rmtree(path, ignore_errors=True)
    ends = np.concatenate([[0], np.cumsum(counts)])
    elapsed = processor = worst = 0.0
    with SetIndex.create(path, worlds.DIM, precision=precision) as index:
        for at in range(0, len(counts), batch):
            part = counts[at : at + batch]
            places = np.arange(ends[at], ends[at] + part.sum()) % len(faces)
            given, names = faces[places], [f"photo-{i}" for i in range(at, at + len(part))]
            began, used = time.perf_counter(), time.process_time()
            index.add(names, given, part)
            took = time.perf_counter() - began
            elapsed, worst = elapsed + took, max(worst, took)
            processor += time.process_time() - used
        stats = index.stats()
    shutil.rmtree(path)
    held = f"{stats.segments} segments, {stats.bytes_per_item:.0f} bytes per item"
    return elapsed, processor, f"the longest wait {worst:.2f} s; {held}"


def main() -> None:
    """Parse, run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=549_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for where, what, milliseconds, remark in rows(Path(folder), args.items):
            print(f"{where}, {what}: {milliseconds / 1e3:.2f} s, {remark}", flush=True)


if __name__ == "__main__":
    main()
