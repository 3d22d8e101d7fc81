"""What the checksums of segments cost the first query of a process.

    python benchmarks/checksums.py [--items 100000] [--repeats 7]

Each line is the median of processes that open an index and search once, in turn with and without comparing
checksums: processor time, and time on the clock, which others on the machine disturb. *Fresh*: the files are in
the system's page cache. *Cold*: they are not. *Warm* is the second query.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from setnet import SetIndex
from support import world as worlds

QUERY = """
import json, mmap, sys, time
import numpy as np
from setnet.engine.segment_file import SegmentFile
from setnet import SetIndex

def map_only(file, name, starts, ends):
    first = (file.entry(name).offset + int(starts[0])) // mmap.PAGESIZE * mmap.PAGESIZE
    if len(starts) == 1:
        file._map.madvise(22, first, file.entry(name).offset + int(ends[0]) - first)

def search(query):
    began, used = time.perf_counter(), time.process_time()
    index.search(query, k=100, mode=mode, threads=1)
    return time.process_time() - used, time.perf_counter() - began

path, mode, verified = sys.argv[1], sys.argv[2], sys.argv[3] == "with"
if not verified:
    SegmentFile.verify_bytes = map_only
query = np.load(path + ".query.npy")
with SetIndex.open(path, read_only=True) as index:
    print(json.dumps([*search(query), *search(query[::-1].copy())]))
"""


def build(path: Path, items: int) -> None:
    """Make an index of one segment, and a query of two of its faces."""
    rng = np.random.default_rng(1)
    counts = worlds.sizes(rng, items)
    faces = worlds.faces(rng, rng.standard_normal((int(counts.sum()), worlds.DIM)).astype("f4"))
    with SetIndex.create(path, worlds.DIM) as index:
        index.add([f"photo-{i}" for i in range(items)], faces, counts)
    np.save(f"{path}.query.npy", faces[[5, 500]])


def drop_from_cache(path: Path) -> None:
    """Ask the system to forget the contents of the segments."""
    for file in (path / "segments").iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def seconds(path: Path, mode: str, checked: str) -> list[float]:
    """Return processor and elapsed time of the first and of the second query of a new process."""
    command = [sys.executable, "-c", QUERY, str(path), mode, checked]
    return list(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    """Parse, run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        build(path, args.items)
        for cache in ("fresh", "cold"):
            for mode in ("exact", "fast", "set"):
                taken: dict[str, list[list[float]]] = {"with": [], "without": []}
                for _ in range(args.repeats):
                    for checked, found in taken.items():
                        if cache == "cold":
                            drop_from_cache(path)
                        found.append(seconds(path, mode, checked))
                for n, what in enumerate(("processor", "clock", "warm processor", "warm clock")):
                    on, off = (1e3 * median(times[n] for times in found) for found in taken.values())
                    print(
                        f"{cache}, {mode}, {what}: {on:.1f} ms, {off:.1f} without ({on / off - 1:+.1%})",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
