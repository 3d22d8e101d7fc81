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
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from setnet import SetIndex
from setnet.connect import CollectionClient
from setnet.engine import Collection
from setnet.evaluate import ndcg
from support.performance_page import machine
from support.world import DIM
from tests.support.live_server import searcher_on
from tests.support.tcp_proxy import Proxy

PEOPLE, NOISE = 300_000, 1.25  # same person: similarity about 0.39 +- 0.07; others 0.00 +- 0.09
BATCH = 500_000  # photos in a segment
K = 100
SAMPLE = 200_000  # photos of which both forms are built
Floats = NDArray[np.float32]


def centres() -> Floats:
    rows = np.random.default_rng(1).standard_normal((PEOPLE, DIM), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def faces(rng: np.random.Generator, known: Floats) -> Floats:
    """One noisy face for each row, at unit length."""
    rows = known + rng.standard_normal(known.shape, dtype=np.float32) * np.float32(NOISE / np.sqrt(DIM))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def who_is_in(batch: int, photos: int) -> tuple[NDArray[np.int64], NDArray[np.int64], np.random.Generator]:
    """Return how many people are in each photo of a batch, and who they are, the same in every run."""
    rng = np.random.default_rng([2, batch])
    counts = rng.choice(np.arange(1, 6), photos, p=[0.45, 0.28, 0.14, 0.08, 0.05])
    return counts, rng.integers(0, PEOPLE, counts.sum()), rng


def build_part(folder: Path, photos: int, part: int, parts: int) -> None:
    """Add those batches of a part that the collection has not yet."""
    collection, known = Collection(folder), centres()
    segments = collection.manifest.segments
    done = sum(listed.items for listed in segments if listed.part == (part, parts)) // BATCH
    for batch in range(part - 1 + done * parts, -(-photos // BATCH), parts):
        size = min(BATCH, photos - batch * BATCH)
        counts, who, rng = who_is_in(batch, size)
        ids = [f"p{batch * BATCH + i}" for i in range(size)]
        collection.add(ids, faces(rng, known[who]), counts, part=(part, parts))


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    return {"bytes_per_item": args.bytes} if args.bytes else {"head": "none", "precision": "float16"}


def build(args: argparse.Namespace) -> dict[str, Any]:
    Collection.create(args.folder, DIM, **options_of(args))
    began, spawn = time.perf_counter(), multiprocessing.get_context("spawn")
    given = [(args.folder, args.photos, part, args.processes) for part in range(1, args.processes + 1)]
    workers = [spawn.Process(target=build_part, args=each) for each in given]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise SystemExit("a part was not built")
    adding = time.perf_counter() - began
    if args.lists:
        Collection(args.folder).compact(lists=True, keep=0)
    with SetIndex.open(args.folder) as index:
        stats = index.stats()
    return {
        "photos": stats.items, "faces": stats.elements, "segments": stats.segments,
        "adding, s": round(adding), "compacting, s": round(time.perf_counter() - began - adding),
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
