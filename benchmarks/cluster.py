"""A cluster on this machine beside one index: what a query costs, how many are answered, how fast photos are read.

    python benchmarks/cluster.py                                  # 100,000 items in 4 shards, 4 workers
    python benchmarks/cluster.py --write docs/cluster.md          # as a section of the page
    python benchmarks/cluster.py --items 20000 --queries 20 --photos 0
    python benchmarks/cluster.py --starts 20 --write docs/cluster.md      # only start and stop it so often
    python benchmarks/cluster.py --probes --items 50000 --queries 20 --write docs/cluster.md     # recall of `fast`

Head and workers are processes on loopback (extra `cluster`); the same queries are answered in turn by one index, by
shards in this process and by the workers, and compared. Processor time is that of all processes together. On one
machine a cluster cannot be faster: the figures are its overhead. Photos are those of the package `openpeople`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np

import world as worlds
from performance_page import machine, write_section
from running_cluster import RunningCluster
from setnet import Library, SetIndex
from setnet.cluster import ClusterIndex
from setnet.errors import SetNetError
from setnet.index import Contents, Hit, mean_of

K, PEOPLE = 100, 2
TICK = os.sysconf("SC_CLK_TCK")


def processor_time(pids: Sequence[int]) -> float:
    """Seconds of processor time that processes have used."""
    total = 0
    for pid in pids:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(words[11]) + int(words[12])
    return total / TICK


class Way:
    """A way to answer queries, with its latencies and processor time."""

    def __init__(self, name: str, index: Any, pids: Sequence[int] = ()) -> None:
        self.name, self.index, self.pids = name, index, [os.getpid(), *pids]
        self.latencies: list[float] = []
        self.used = 0.0

    def timed(self, query: Any, mode: str) -> list[Hit]:
        used, start = processor_time(self.pids), time.perf_counter()
        hits = list(self.index.search(query, k=K, mode=mode, threads=1))
        self.latencies.append(time.perf_counter() - start)
        self.used += processor_time(self.pids) - used
        return hits

    def row(self, same: int, queries: int) -> str:
        ms = [1000 * s for s in self.latencies]
        each = 1000 * self.used / len(ms)
        shown = f"{min(ms):.1f} | {statistics.median(ms):.1f} | {np.percentile(ms, 95):.1f} | {each:.1f}"
        return f"| {self.name} | {shown} | {same} of {queries} |"


def compared(ways: Sequence[Way], queries: Sequence[Any], mode: str) -> list[str]:
    for way in ways:
        way.latencies.clear()
        way.used = 0.0
        for query in queries[:3]:
            way.index.search(query, k=K, mode=mode, threads=1)
    same = dict.fromkeys((way.name for way in ways), 0)
    for query in queries:
        expected = ways[0].timed(query, mode)
        for way in ways[1:]:
            same[way.name] += way.timed(query, mode) == expected
    same[ways[0].name] = len(queries)
    return [way.row(same[way.name], len(queries)) for way in ways]


def throughput(way: Way, queries: Sequence[Any], clients: int) -> str:
    def one(query: Any) -> None:
        way.index.search(query, k=K, threads=1)

    used, start = processor_time(way.pids), time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(one, queries))
    seconds, used = time.perf_counter() - start, processor_time(way.pids) - used
    return f"| {way.name} | {len(queries) / seconds:.0f} | {1000 * used / len(queries):.1f} |"


def fill(index: SetIndex | ClusterIndex, contents: Contents) -> None:
    """Add all items to an index or a cluster, and merge its segments."""
    starts = np.concatenate([[0], np.cumsum(contents.counts)])
    for at in range(0, len(contents.ids), worlds.BATCH):
        to = min(at + worlds.BATCH, len(contents.ids))
        rows = contents.elements[starts[at] : starts[to]]
        index.add(contents.ids[at:to], rows, contents.counts[at:to])
    index.compact()


def searching(folder: Path, items: int, count: int, shards: int, workers: int) -> list[str]:
    world = worlds.make(folder, items)
    queries = world.queries(PEOPLE, count, 11)[0]
    with SetIndex.open(world.path, read_only=True) as source:
        contents = source.contents()
    settings: dict[str, Any] = {"dim": worlds.DIM, "head": "none", "code_centre": mean_of(contents.elements)}
    with SetIndex.create(folder / "one", **settings) as one:
        fill(one, contents)
        running = RunningCluster(folder / "cluster")
        with ClusterIndex.create(running.root, shards=shards, **settings) as here:
            fill(here, contents)
            try:
                running.start(workers)
                with running.client() as there:
                    pids = [process.pid for process in running.processes]
                    ways = [
                        Way("one index", one),
                        Way(f"{shards} shards, this process", here),
                        Way(f"{shards} shards, {workers} workers", there, pids),
                    ]
                    head = "| | min ms | median ms | p95 ms | processor ms | same answer |\n|---|---|---|---|---|---|"
                    lines = [f"{items:,} items, {PEOPLE} people, k = {K}, one client:", "", head]
                    for mode in ("exact", "fast"):
                        lines += [
                            row.replace("| ", f"| {mode}, ", 1) for row in compared(ways, queries, mode)
                        ]
                    lines += [
                        "",
                        "Exact, 8 clients at once:",
                        "",
                        "| | queries / s | processor ms |",
                        "|---|---|---|",
                    ]
                    lines += [throughput(way, queries, 8) for way in ways]
                    size = here.stats().bytes_per_item
                    faces = world.counts.mean()
                    return [
                        *lines,
                        "",
                        f"On disk {size:.0f} bytes per item of {faces:.1f} faces, set vectors left out.",
                    ]
            finally:
                running.stop()


def probing(folder: Path, items: int, count: int, shards: int) -> list[str]:
    """Compare what `fast` finds of the exact best with inverted lists, in one index and in shards."""
    world = worlds.make(folder, items)
    queries = world.queries(PEOPLE, count, 12)[0]
    with SetIndex.open(world.path, read_only=True) as source:
        contents = source.contents()
    settings: dict[str, Any] = {"dim": worlds.DIM, "head": "none", "code_centre": mean_of(contents.elements)}
    with (
        SetIndex.create(folder / "one", **settings) as one,
        ClusterIndex.create(folder / "cluster", shards=shards, **settings) as many,
    ):
        for index in (one, many):
            fill(index, contents)
            index.compact(lists=True)
        exact = [[hit.id for hit in one.search(query, k=K)] for query in queries]
        lines = [
            f"{items:,} items with inverted lists: share of the exact best 10 and {K} that `fast` finds, by probes:",
            "",
            f"| probes | 10, one index | 10, {shards} shards | {K}, one index | {K}, {shards} shards |",
            "|---|---|---|---|---|",
        ]
        for probes in (1, 4, 16, 64, 0):
            row = []
            for k in (10, K):
                for index in (one, many):
                    best = [{h.id for h in index.search(q, k=k, mode="fast", probes=probes)} for q in queries]
                    shares = [len(a.intersection(b[:k])) / k for a, b in zip(best, exact, strict=True)]
                    row.append(f"{100 * statistics.mean(shares):.1f} %")
            lines.append(f"| {probes or 'all codes'} | {' | '.join(row)} |")
        return lines


def indexing(folder: Path, photos: int) -> list[str]:
    """Read the same photos with one worker and with two, of one thread each."""
    from setnet.faces import FaceSettings

    album = folder / "album"
    album.mkdir()
    found = sorted(str(path) for path in Path(str(files("openpeople"))).rglob("*.jpg"))
    for i in range(photos):  # copies differ in their last byte, so that each is read
        data = Path(found[i % len(found)]).read_bytes() + bytes([i // len(found)])
        (album / f"{i:04d}.jpg").write_bytes(data)
    lines = ["| workers | photos / s |", "|---|---|"]
    for workers in (1, 2):
        place = folder / f"library-{workers}"
        Library.create(place, FaceSettings(), shards=2).close()
        running = RunningCluster(place / "index")
        try:
            running.start(workers)
            with Library.open(place) as library:
                report = library.index([album])
            lines.append(f"| {workers} | {photos / report.seconds:.2f} |")
        finally:
            running.stop()
        shutil.rmtree(place)
    return [
        f"{photos} photos of `openpeople` with {os.cpu_count()} cores, workers of one thread:",
        "",
        *lines,
    ]


def starting(folder: Path, times: int, workers: int) -> list[str]:
    """Start head and workers again and again until all answer; count the starts that fail."""
    ClusterIndex.create(folder / "cluster", shards=workers, dim=8).close()
    seconds, used, failed = [], [], 0
    for _ in range(times):
        running = RunningCluster(folder / "cluster")
        start = time.perf_counter()
        try:
            running.start(workers)
            with running.client() as index:
                index.add(["one"], np.eye(1, 8, dtype=np.float32), [1])
                index.publish()
                assert len(index.search(np.eye(1, 8), k=1)) == 1
            seconds.append(time.perf_counter() - start)
            used.append(processor_time([process.pid for process in running.processes]))
        except (AssertionError, SetNetError) as error:
            failed += 1
            print(f"a start failed: {error}", file=sys.stderr)
        finally:
            running.stop()
    if not seconds:
        return [f"{failed} of {times} starts of head and {workers} workers failed."]
    return [
        f"{failed} of {times} starts of head and {workers} workers failed. Until all had joined, stored an item and "
        f"answered a search: median {statistics.median(seconds):.1f} s, longest {max(seconds):.1f} s, "
        f"{statistics.median(used):.1f} s of processor time.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--photos", type=int, default=40, help="photos to index; 0 leaves that out")
    parser.add_argument("--starts", type=int, default=0, help="count failed starts, and measure nothing else")
    parser.add_argument(
        "--probes", action="store_true", help="measure the recall of `fast` with lists instead"
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the figures on this page")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if given.starts:
            name, lines = "cluster starts", starting(Path(scratch), given.starts, given.workers)
        elif given.probes:
            name = "cluster probes"
            lines = probing(Path(scratch), given.items, given.queries, given.shards)
        else:
            name = "cluster"
            lines = searching(Path(scratch), given.items, given.queries, given.shards, given.workers)
            if given.photos:
                lines += ["", *indexing(Path(scratch), given.photos)]
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
    text = "\n".join([*lines, "", f"Measured by `python benchmarks/{command}` on {machine('distributed')}."])
    print(text)
    if given.write:
        write_section(given.write, name, text)


if __name__ == "__main__":
    main()
