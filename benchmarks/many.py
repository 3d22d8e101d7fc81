"""A collection of up to 10^8 simulated photos: built by parts, searched by searchers, some of them harmed.

    python benchmarks/many.py --photos 100_000_000 --bytes 128 --folder /data/many    # 20 GB of disk, hours
    python benchmarks/many.py --photos 10_000_000 --lists                             # with vectors: also `fast`
    python benchmarks/many.py --photos 1_000_000                                      # a trial, minutes

Each process builds a part of the photos, batch by batch; one that was stopped goes on. Then searchers, two of each
part, answer queries of two and three people through proxies: undisturbed, with a frozen connection now and then, and
with a searcher killed. Every answer must be that of the collection opened as one index. nDCG is that of a sample of
the photos, kept in so many bytes and as floats.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from setnet import SetIndex
from setnet.connect import CollectionClient
from setnet.engine import Collection
from setnet.evaluate import LFW_LIKE, ndcg
from setnet.train import VirtualPeople
from support.performance_page import machine
from support.world import DIM
from tests.support.live_server import searcher_on
from tests.support.tcp_proxy import Proxy

BATCH = 500_000  # photos in a segment
PEOPLE = 1_000_000  # in all photos, at most
K = 100
Floats = NDArray[np.float32]


class World:
    """Photos of one to five people, who look as different as people in real descriptors, or more so."""

    def __init__(self, photos: int, difficulty: float = 1.0) -> None:
        self.photos, self.model = photos, VirtualPeople.load(LFW_LIKE).harder(difficulty)
        self.people = self.model.people(np.random.default_rng(1), min(PEOPLE, max(1000, photos // 18)))

    def batch(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many people are in each photo of a batch, and who they are: the same in every run."""
        rng, size = np.random.default_rng([2, number]), min(BATCH, self.photos - number * BATCH)
        counts = rng.choice(np.arange(1, 6), size, p=[0.45, 0.28, 0.14, 0.08, 0.05])
        return counts, rng.integers(0, len(self.people), counts.sum())

    def faces(self, seed: Sequence[int], who: NDArray[np.int64]) -> Floats:
        """Return a new face of each of some people."""
        rng, step = np.random.default_rng(seed), 50_000  # so many fit a processor's caches better than all
        parts = (who[at : at + step] for at in range(0, len(who), step))
        return np.concatenate([self.model.faces(rng, self.people, part) for part in parts])

    def queries(self, how_many: int) -> list[Floats]:
        """Return new faces of two or three people who are together in some photo."""
        counts, who = self.batch(0)
        starts, rng = np.cumsum(counts) - counts, np.random.default_rng(3)
        asked = []
        for i in range(how_many):
            photo = rng.choice(np.flatnonzero(counts >= 2 + i % 2))
            asked.append(self.faces([3, i], who[starts[photo] : starts[photo] + 2 + i % 2]))
        return asked


def build_batches(folder: Path, photos: int, worker: int, workers: int) -> None:
    """Add those batches of a worker that the collection has not yet, each as a part of its own."""
    collection, world, batches = Collection(folder), World(photos), -(-photos // BATCH)
    done = {listed.part for listed in collection.manifest.segments}
    for number in range(worker, batches, workers):
        if (number + 1, batches) in done:
            continue
        began, cpu = time.perf_counter(), time.process_time()
        counts, who = world.batch(number)
        rows, drawn = world.faces([4, number], who), time.process_time()
        ids = [f"p{number * BATCH + i}" for i in range(len(counts))]
        collection.add(ids, rows, counts, part=(number + 1, batches))
        spent = {
            "photos": len(ids), "faces": len(rows), "drawing": drawn - cpu,
            "adding": time.process_time() - drawn, "wall": time.perf_counter() - began,
            "most memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }  # fmt: skip
        with folder.with_suffix(".jsonl").open("a") as log:
            log.write(json.dumps(spent) + "\n")


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    return {"bytes_per_item": args.bytes} if args.bytes else {"head": "none", "precision": "float16"}


def build(args: argparse.Namespace) -> dict[str, Any]:
    Collection.create(args.folder, DIM, **options_of(args))
    spawn = multiprocessing.get_context("spawn")
    given = [(args.folder, args.photos, worker, args.processes) for worker in range(args.processes)]
    workers = [spawn.Process(target=build_batches, args=each) for each in given]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise SystemExit("some batches were not added")
    logged = [json.loads(line) for line in args.folder.with_suffix(".jsonl").open()]
    spent = {name: sum(one[name] for one in logged) for name in logged[0]}
    began, cpu = time.perf_counter(), time.process_time()
    if args.lists and Collection(args.folder).manifest.segments[0].part != (1, 1):
        Collection(args.folder).compact(lists=True, keep=0)
    compacting = f"{time.process_time() - cpu:.0f} / {time.perf_counter() - began:.0f} s"
    with SetIndex.open(args.folder) as index:
        stats = index.stats()
    return {
        "photos": stats.items, "faces": stats.elements, "segments": stats.segments,
        "drawing descriptors, processor": f"{spent['drawing']:.0f} s",
        "adding, processor": f"{spent['adding']:.0f} s",
        "drawing and adding, wall": f"{spent['wall'] / args.processes:.0f} s",
        "most memory of a writer": f"{max(one['most memory'] for one in logged) / 1e9:.1f} GB",
        **({"compacting with lists, processor / wall": compacting} if args.lists else {}),
        "GB": round(stats.bytes / 1e9, 2), "bytes per photo": round(stats.bytes_per_item),
    }  # fmt: skip


def queries(photos: int, how_many: int) -> list[tuple[Floats, NDArray[np.int64]]]:
    """Return new faces of two or three people who are together in some photo, and who they are."""
    counts, who, _ = who_is_in(0, min(BATCH, photos))
    starts, rng, known = np.cumsum(counts) - counts, np.random.default_rng(3), centres()
    asked = []
    for i in range(how_many):
        size = 2 + i % 2
        photo = rng.choice(np.flatnonzero(counts >= size))
        named = who[starts[photo] : starts[photo] + size]
        asked.append((faces(rng, known[named]), named))
    return asked


def memory(process: subprocess.Popen[str]) -> str:
    """Return how much a process holds beside mapped files, and with these."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines() if " kB" in line}
    return f"{kilobytes['RssAnon'] / 1e6:.2f} / {kilobytes['VmRSS'] / 1e6:.2f} GB"


def timed(client: CollectionClient, asked: list[Any], mode: Any, harm: Any = None) -> tuple[str, list[Any]]:
    """Return p50 and p99 of searches in milliseconds, and their hits."""
    took, found = [], []
    for i, (query, _) in enumerate(asked):
        if harm is not None and i % 10 == 0:
            harm(i // 10)
        began = time.perf_counter()
        found.append(client.search(query, K, mode))
        took.append((time.perf_counter() - began) * 1000)
    return f"{np.percentile(took, 50):.1f} / {np.percentile(took, 99):.1f} ms", found


def search(args: argparse.Namespace) -> dict[str, Any]:
    asked, figures = queries(args.photos, args.queries), dict[str, Any]()
    modes = ["exact", "fast"] if args.lists else ["exact"]
    with ExitStack() as stack:
        parts = [f"{i % args.parts + 1}/{args.parts}" for i in range(2 * args.parts)]
        running = [stack.enter_context(searcher_on(args.folder, part)) for part in parts]
        proxies = [stack.enter_context(Proxy(one.url)) for one in running]
        client = stack.enter_context(CollectionClient([proxy.url for proxy in proxies], timeout=300))
        index = stack.enter_context(SetIndex.open(args.folder))
        began = time.perf_counter()
        client.search(asked[0][0], K)
        figures["first search, s"] = round(time.perf_counter() - began, 2)
        for mode in modes:
            timed(client, asked, mode)  # reads the files into memory, as far as they fit
            figures[f"{mode}, p50 / p99"], found = timed(client, asked, mode)
            for (query, _), hits in list(zip(asked, found, strict=True))[:20]:
                if hits != index.search(query, K, mode):
                    raise SystemExit("the searchers answer something else than one index")

            def freeze(turn: int) -> None:
                proxies[turn % len(proxies)].freeze()

            figures[f"{mode}, a connection frozen before every tenth"], again = timed(
                client, asked, mode, freeze
            )
            if again != found:
                raise SystemExit("frozen connections change answers")
        figures["memory of a searcher, beside mapped files / with them"] = memory(running[0].process)
        running[0].process.kill()
        figures["exact, a searcher killed"], again = timed(client, asked, "exact")
        if again != timed(client, asked, "exact")[1]:
            raise SystemExit("a killed searcher changes answers")
    return figures


def quality(args: argparse.Namespace) -> dict[str, Any]:
    """Return nDCG@10 of a sample as it is stored, and as floats."""
    size = min(SAMPLE, args.photos)
    counts, who, rng = who_is_in(0, size)
    rows, starts = faces(rng, centres()[who]), np.cumsum(counts) - counts
    found = {}
    for name, options in {"as stored": options_of(args), "floats": {"head": "none"}}.items():
        collection = Collection.create(
            args.folder.with_name(f"{args.folder.name}-{name.split()[0]}"), DIM, **options
        )
        if not collection.manifest.segments:
            collection.add([str(i) for i in range(size)], rows, counts)
        owner, shares = np.repeat(np.arange(size), counts), []
        picked = np.random.default_rng(4).choice(np.flatnonzero(counts >= 3), args.queries, replace=False)
        with SetIndex.open(collection.address) as index:
            for photo in picked.tolist():
                named = who[starts[photo] : starts[photo] + 3]
                query = faces(np.random.default_rng(photo), centres_of(named))
                relevance = np.bincount(owner[np.isin(who, named)], minlength=size)
                hits = np.array([int(name) for name in index.search(query, 10).ids])
                best = -np.sort(-relevance)[:100]
                shares.append(np.mean(ndcg(relevance[hits][None], best[None], 10)))
        found[f"nDCG@10, {name}"] = round(float(np.mean(shares)), 2)
    return found


def centres_of(named: NDArray[np.int64], _kept: list[Floats] = []) -> Floats:  # noqa: B006
    if not _kept:
        _kept.append(centres())
    return _kept[0][named]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=0, help="budget codes of so many bytes, without vectors")
    parser.add_argument("--lists", action="store_true", help="inverted lists, and `fast`")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/many"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--parts", type=int, default=2, help="each has two searchers")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    args = parser.parse_args()
    figures = {"machine": machine()}
    for stage in (build, search, quality):
        for name, value in stage(args).items():
            figures[name] = value
            print(f"{name:60} {value}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
