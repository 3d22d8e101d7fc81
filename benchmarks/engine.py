"""The engine against the memory, and against its peers, in one run on one world.

    python benchmarks/engine.py                      # everything: builds worlds, about half an hour
    python benchmarks/engine.py --only exact set     # some parts
    python benchmarks/engine.py --write docs/performance.md

Contenders of a part take turns, so that a busy moment of the machine hits all of them; each line shows the
minimum and the median, and the ratio to the time this machine needs to read the same bytes once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")

import faiss
import numpy as np
import scann
from numpy.typing import NDArray

import ingest
from setnet import Hit, SetIndex
from setnet.engine import kernel_level
from setnet.engine.query import Query
from setnet.engine.rank import best_items, best_of
from setnet.engine.results import RankedItems
from setnet.engine.snapshot import Snapshot
from setnet.evaluate import ndcg
from setnet.heads import unit
from support import peers
from support import world as worlds
from support.performance_page import machine, write_section
from support.race import Book, Row, markdown, reader

Floats = NDArray[np.float32]
PARTS = ("exact", "set", "rerank", "many", "ingest", "open", "growth")
GROWTH: dict[int, dict[str, Any]] = {
    50_000: {},
    549_000: {},
    2_000_000: {},
    10_000_000: {"set_bits": 8, "precision": "float16"},  # 15 GB of disk, 6 GB more while it is compacted
}


def best_sets(snapshot: Snapshot, query: Query, threads: int) -> list[RankedItems]:
    """Search for the best 2000 by set vectors."""
    query = replace(query, k=2000, mode="set", threads=threads)
    return best_items(snapshot, None, [replace(query, sets=query)])


def numbers(hits: list[Hit]) -> NDArray[np.int64]:
    """The numbers of the items found."""
    return np.array([int(hit.id.split("-")[1]) for hit in hits])


def mean_ndcg(found: list[NDArray[np.int64]], truth: list[NDArray[Any]]) -> float:
    """nDCG@10 of several queries, from the relevance of every item to each."""
    ranked = [relevance[items][None] for items, relevance in zip(found, truth, strict=True)]
    best = [-np.sort(-np.partition(relevance.astype(np.int64), -100)[-100:])[None] for relevance in truth]
    return float(np.mean([np.mean(ndcg(r, b, 10)) for r, b in zip(ranked, best, strict=True)]))


def ways_of_searching(index: SetIndex) -> dict[str, dict[str, Any]]:
    """The modes of an index; where it has inverted lists, `fast` with several recalls."""
    ways: dict[str, dict[str, Any]] = {
        "exact": {},
        "set": {"mode": "set"},
    }
    if any(segment.listed for segment in index._reader.snapshot().segments):
        ways |= {f"fast, recall {share}": {"mode": "fast", "recall": share} for share in (0.9, 0.98)}
    return ways


class Bench:
    """The worlds, and one method per part."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.folder: Path = args.folder
        self.items: int = args.items
        self.book = Book(args.repeats)
        self.world = worlds.make(self.folder, self.items)
        self.index = SetIndex.open(self.world.path, read_only=True)
        self.snapshot = self.index._reader.snapshot()
        self.elements = np.concatenate([s.elements for s in self.snapshot.segments])
        self.offsets = np.concatenate([[0], np.cumsum(self.world.counts)])
        self.logistic = (self.index.logistic.w, self.index.logistic.b)
        self.growth = {n: options for n, options in GROWTH.items() if n <= args.largest}

    def part_exact(self) -> None:
        """Part 1: descriptor-per-element, top 100."""
        owner = np.repeat(np.arange(self.items), self.world.counts)
        rough = faiss.index_factory(worlds.DIM, "IVF4096,PQ64x4fs", faiss.METRIC_INNER_PRODUCT)
        rough.train(self.elements[:: max(1, len(self.elements) // 200_000)])
        rough.add(self.elements)
        rough.nprobe = 128
        flat = faiss.index_factory(worlds.DIM, "PQ64x4fs", faiss.METRIC_INNER_PRODUCT)
        flat.train(self.elements[:: max(1, len(self.elements) // 100_000)])
        flat.add(self.elements)
        args = (self.elements, self.offsets, owner, *self.logistic)
        plain = peers.sgemm_and_greedy(self.elements, self.offsets, *self.logistic)
        ivf, pq = peers.elements_then_greedy(rough, *args), peers.elements_then_greedy(flat, *args)
        read = reader(len(self.elements) * worlds.DIM)
        for people in (2, 3):
            queries, named = self.world.queries(people, 40, seed=people)
            truth = [self.world.relevance(row) for row in named]

            def own(turn: int, threads: int, queries: list[Floats] = queries, **options: Any) -> Any:
                return self.index.search(queries[turn % 40], k=100, threads=threads, **options)

            def quality(found: Callable[[Floats], NDArray[np.int64]], queries: list[Floats] = queries,
                        truth: list[NDArray[np.int64]] = truth) -> str:  # fmt: skip
                return f"nDCG@10 {mean_ndcg([found(q) for q in queries], truth):.2f}"

            def ids(q: Floats, mode: str = "exact") -> NDArray[np.int64]:
                return numbers(self.index.search(q, k=100, mode=mode))

            self.book.race(
                "exact",
                f"top 100, Q = {people}",
                {
                    ("setnet exact", 1): lambda t: own(t, 1),
                    ("setnet exact", 2): lambda t: own(t, 2),
                    ("setnet fast", 1): lambda t: own(t, 1, mode="fast"),
                    ("sgemm + compiled greedy", 1): lambda t, q=queries: plain(q[t % 40], 100),
                    ("sgemm + compiled greedy", 2): lambda t, q=queries: plain(q[t % 40], 100),
                    ("faiss PQ64x4fs + greedy", 1): lambda t, q=queries: pq(q[t % 40], 100),
                    ("faiss IVF4096,PQ64x4fs/128 + greedy", 1): lambda t, q=queries: ivf(q[t % 40], 100),
                },
                read,
                {
                    "setnet exact": quality(ids),
                    "setnet fast": quality(lambda q: ids(q, "fast")),
                    "sgemm + compiled greedy": quality(lambda q: plain(q, 100)),
                    "faiss PQ64x4fs + greedy": quality(lambda q: pq(q, 100)),
                    "faiss IVF4096,PQ64x4fs/128 + greedy": quality(lambda q: ivf(q, 100)),
                },
            )

    def part_set(self) -> None:
        """Part 2: the first pass over set vectors, top 2000."""
        vectors = np.concatenate([s.file.array("set_rows") for s in self.snapshot.segments])
        wide = self._wide_index(vectors)
        flat = faiss.IndexFlatIP(worlds.DIM)
        eight = faiss.IndexScalarQuantizer(
            worlds.DIM, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        )
        half = faiss.IndexScalarQuantizer(
            worlds.DIM, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        inverted = faiss.index_factory(worlds.DIM, "IVF1024,Flat", faiss.METRIC_INNER_PRODUCT)
        graph = faiss.IndexHNSWFlat(worlds.DIM, 16, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction, graph.hnsw.efSearch = 40, 2000
        faiss.omp_set_num_threads(2)
        for index in (flat, eight, half, inverted, graph):
            index.train(vectors[::5])
            index.add(vectors)
        inverted.nprobe = 256
        brute = scann.scann_ops_pybind.builder(vectors, 2000, "dot_product").score_brute_force().build()
        coded = self._coded_index(8)
        read32, read8 = reader(vectors.nbytes), reader(vectors.size)
        for people in (1, 2, 3):
            queries, _ = self.world.queries(people, 40, seed=10 + people)
            sums = [self._set_query(q) for q in queries]
            described = [unit(q) for q in queries]

            def own(snapshot: Any, turn: int, threads: int, sums: list[Query] = sums) -> Any:
                return best_sets(snapshot, sums[turn % 40], threads)

            exact = [set(flat.search(q, 2000)[1][0].tolist()) for q in described[:10]]

            def recall(found: Callable[[Floats], Any], exact: Any = exact, described: Any = described) -> str:
                shares = [len(set(found(q)) & e) / 2000 for q, e in zip(described[:10], exact, strict=True)]
                return f"recall@2000 {np.mean(shares):.3f}"

            quality = {}
            if people == 1:
                quality = {
                    "faiss IVF1024/256": recall(lambda q: inverted.search(q, 2000)[1][0]),
                    "faiss HNSW16": recall(lambda q: graph.search(q, 2000)[1][0]),
                    "faiss SQ8": recall(lambda q: eight.search(q, 2000)[1][0]),
                }
            full: dict[tuple[str, int], Callable[[int], Any]] = {
                ("setnet, float32 exact", 1): lambda t: own(self.snapshot, t, 1),
                ("setnet, float32 exact", 2): lambda t: own(self.snapshot, t, 2),
                ("faiss Flat", 1): lambda t, d=described: flat.search(d[t % 40], 2000),
                ("faiss SQfp16", 1): lambda t, d=described: half.search(d[t % 40], 2000),
                ("scann brute force", 1): lambda t, d=described: [brute.search(row) for row in d[t % 40]],
                ("numpy", 1): lambda t, d=described: np.argpartition(
                    -(vectors @ d[t % 40].T).sum(axis=1), 2000
                ),
                ("faiss IVF1024/256", 1): lambda t, d=described: inverted.search(d[t % 40], 2000),
                ("faiss HNSW16", 1): lambda t, d=described: graph.search(d[t % 40], 2000),
            }
            if people == 1:
                full["usearch exact", 1] = self._usearch(vectors, described)
            self.book.race("set", f"float32 128-D, top 2000, Q = {people}", full, read32, quality)
            self.book.race(
                "set",
                f"8 bit 128-D, top 2000, Q = {people}",
                {
                    ("setnet, 8 bit", 1): lambda t: own(coded, t, 1),
                    ("setnet, 8 bit", 2): lambda t: own(coded, t, 2),
                    ("faiss SQ8", 1): lambda t, d=described: eight.search(d[t % 40], 2000),
                },
                read8,
            )
            lifted = [
                Query.of(unit(q @ self.lift), 1024, self.index._reader.settings.set_logistic)
                for q in described
            ]
            self.book.race(
                "set",
                f"1 bit 1024-D, top 2000, Q = {people}",
                {("setnet, 1 bit", n): lambda t, n=n, q=lifted: best_sets(wide, q[t % 40], n) for n in (1, 2)},
                reader(self.items * 128),
            )  # fmt: skip

    def part_rerank(self) -> None:
        """Part 3: exact scores of candidates scattered over the world."""
        plain = peers.numpy_rerank(self.elements, self.offsets, *self.logistic)
        starts = np.concatenate([[0], np.cumsum([len(s) for s in self.snapshot.segments])])
        for n in (100, 1000, 2000):
            queries, _ = self.world.queries(2, 40, seed=30)
            rng = np.random.default_rng(n)
            picks = [np.sort(rng.choice(self.items, n, replace=False)) for _ in range(40)]
            asked = [Query.of(q, worlds.DIM, self.index.logistic) for q in queries]
            chosen = []
            for items in picks:
                part = np.searchsorted(starts, items, side="right") - 1
                rows = [(s, (items - starts[part])[part == s]) for s in range(len(starts) - 1)]
                chosen.append([(s, r) for s, r in rows if len(r)])

            def own(turn: int, chosen: Any = chosen, asked: Any = asked) -> Any:
                return best_of(self.snapshot, chosen[turn % 40], asked[turn % 40])

            contenders: dict[tuple[str, int], Callable[[int], Any]] = {
                ("setnet", 1): own,
                ("numpy gather + product + greedy", 1): lambda t, p=picks, q=queries: plain(
                    p[t % 40], q[t % 40]
                ),
            }
            self.book.race("rerank", f"best 100 of {n} candidates, Q = 2", contenders, None)

    def part_many(self) -> None:
        """Part 4: a hundred queries of one descriptor each."""
        vectors = np.concatenate([s.file.array("set_rows") for s in self.snapshot.segments])
        flat = faiss.IndexFlatIP(worlds.DIM)
        flat.add(vectors)
        brute = scann.scann_ops_pybind.builder(vectors, 100, "dot_product").score_brute_force().build()
        queries, _ = self.world.queries(1, 100, seed=40)
        batch = unit(np.concatenate(queries))
        repeats, self.book.repeats = self.book.repeats, max(3, self.book.repeats // 5)

        def own(t: int, threads: int) -> Any:
            return self.index.search_many(queries, k=100, mode="set", threads=threads)

        def single(t: int, threads: int) -> Any:
            return [self.index.search(q, k=100, mode="set", threads=threads) for q in queries]

        self.book.race(
            "many",
            "100 set queries, top 100",
            {
                ("setnet search_many", 1): lambda t: own(t, 1),
                ("setnet search_many", 2): lambda t: own(t, 2),
                ("setnet, one call after another", 1): lambda t: single(t, 1),
                ("setnet, one call after another", 2): lambda t: single(t, 2),
                ("faiss Flat, batch", 1): lambda t: flat.search(batch, 100),
                ("faiss Flat, batch", 2): lambda t: flat.search(batch, 100),
                ("scann brute force, batch", 1): lambda t: brute.search_batched(batch),
                ("scann brute force, batch", 2): lambda t: brute.search_batched_parallel(batch),
            },
            None,
        )
        self.book.repeats = repeats

    def part_open(self) -> None:
        """Part 5: opening, the first query, ingest, memory, each in a process of its own."""
        for items, options in self.growth.items():
            world = worlds.make(self.folder, items, **options)
            code = _OPEN.format(path=str(world.path), dim=worlds.DIM)
            figures = [json.loads(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
            best = {key: min(f[key] for f in figures) for key in figures[0]}
            self.book.note("open", f"N = {items}", "open", best["open"])
            ratio = f"{best['first'] / best['warm']:.2f} x warm ({best['warm']:.1f} ms)"
            self.book.note("open", f"N = {items}", "first query, exact, Q = 2", best["first"], ratio)
            memory = f"anonymous {best['anonymous']:.0f} MB (files stay mapped: {best['mapped']:.0f} MB)"
            self.book.note("open", f"N = {items}", "memory of a searching process", 0.0, memory)
            built = world.built
            rate = f"{world.counts.sum() / built.adding:,.0f} elements/s in batches of {worlds.BATCH}"
            self.book.note("open", f"N = {items}", "adding", built.adding * 1e3, rate)
            memory = f"anonymous memory of the build at most {built.anonymous_mb:.0f} MB"
            self.book.note("open", f"N = {items}", "compacting", built.compacting * 1e3, memory)

    def part_ingest(self) -> None:
        """Adding items in batches of several sizes, to a new index each."""
        for row in ingest.rows(self.folder):
            self.book.note("ingest", *row)

    def part_growth(self) -> None:
        """Part 6: the same query on worlds of growing size."""
        for items, options in self.growth.items():
            world = worlds.make(self.folder, items, **options)
            queries, named = world.queries(2, 40, seed=50)
            truth = [world.relevance(row).astype(np.uint8) for row in named]
            with SetIndex.open(world.path, read_only=True) as index:
                size = f"{index.stats().bytes_per_item:.0f} bytes per item on disk"
                exact = 0.0
                for who, options in ways_of_searching(index).items():
                    times, found = [], []
                    for query in queries:  # so that all it reads is in memory
                        index.search(query, k=100, threads=1, **options)
                    for query in queries:
                        began = time.perf_counter()
                        hits = index.search(query, k=100, threads=1, **options)
                        times.append((time.perf_counter() - began) * 1e3)
                        found.append(numbers(hits))
                    gained = mean_ndcg(found, truth)
                    exact = exact or gained
                    work = f"N = {items}, Q = 2, top 100"
                    row = Row("growth", work, who, 1, min(times), float(np.median(times)))
                    each, share = min(times) * 1e6 / items, 100 * gained / exact
                    row.quality = f"{each:.1f} ns per item, {share:.2f} % of exact's nDCG@10, {size}"
                    self.book.add(row)

    def _set_query(self, query: Floats) -> Query:
        return Query.of(unit(query), worlds.DIM, self.index._reader.settings.set_logistic)

    def _coded_index(self, bits: int) -> Any:
        world = worlds.make(self.folder, self.items, set_bits=bits)
        self._kept = SetIndex.open(world.path, read_only=True)
        return self._kept._reader.snapshot()

    def _wide_index(self, vectors: Floats) -> Any:
        """The set vectors lifted at random to 1,024 dimensions of one bit."""
        path = self.folder / f"wide-{self.items}"
        self.lift = np.random.default_rng(0).normal(size=(worlds.DIM, 1024)).astype(np.float32)
        if not path.exists():
            with SetIndex.create(path, 1, set_dim=1024, set_bits=1) as index:
                for at in range(0, len(vectors), 50_000):
                    part = unit(vectors[at : at + 50_000] @ self.lift)
                    names = [str(i) for i in range(at, at + len(part))]
                    index.add(names, np.ones((len(part), 1)), np.ones(len(part), int), set_vectors=part)
        self._wide = SetIndex.open(path, read_only=True)
        return self._wide._reader.snapshot()

    def _usearch(self, vectors: Floats, described: list[Floats]) -> Callable[[int], Any]:
        from usearch.index import MetricKind
        from usearch.index import search as usearch_search

        return lambda t: usearch_search(
            vectors, described[t % 40], 2000, MetricKind.IP, exact=True, threads=1
        )


_OPEN = """
import json, time, numpy as np
from setnet import Hit, SetIndex
began = time.perf_counter()
index = SetIndex.open({path!r}, read_only=True)
opened = time.perf_counter() - began
query = np.random.default_rng(0).normal(size=(2, {dim})).astype(np.float32)
query /= np.linalg.norm(query, axis=1, keepdims=True)
def once():
    began = time.perf_counter()
    index.search(query, k=100, threads=1)
    return time.perf_counter() - began
first = once()
warm = min(once() for _ in range(7))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
size = lambda key: int(status[key].split()[0]) / 1024
print(json.dumps(dict(open=opened * 1e3, first=first * 1e3, warm=warm * 1e3, anonymous=size("RssAnon"), mapped=size("RssFile"))))
"""


def main() -> None:
    """Parse, run the parts, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=549_000)
    parser.add_argument("--largest", type=int, default=2_000_000, help="largest world of the growth table")
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "setnet-bench")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path, help="write the tables to this Markdown file")
    args = parser.parse_args()
    text = machine("numpy", "faiss-cpu", "scann")
    print(text)
    bench = Bench(args)
    for part in args.only:
        getattr(bench, f"part_{part}")()
    print(
        f"peak memory of this run, peers included: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )
    if args.json:
        args.json.write_text(
            json.dumps({"machine": text, "rows": [asdict(r) for r in bench.book.rows]}, indent=1)
        )
    origin = f"Written by `python {' '.join(sys.argv)}` on {text}; {args.repeats} turns."
    for part in args.only if args.write else ():
        rows = [row for row in bench.book.rows if row.part == part]
        write_section(args.write, f"{part} {kernel_level()}", markdown(rows, origin))


if __name__ == "__main__":
    main()
