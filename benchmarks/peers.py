"""setnet against the engines that a user would reach for, on the same sets in one run, cold.

    python benchmarks/peers.py                                      # both kinds of sets, three worlds
    python benchmarks/peers.py --items 20000 --worlds real          # a quick look
    python benchmarks/peers.py --only tokens --who setnet torch     # some of it
    python benchmarks/peers.py --only faces --who setnet faiss --items 2000000 --tune   # at equal recall

Two kinds of sets: *faces* (items of 2 to 6 elements, greedy one-to-one matching, 1 to 3 faces wanted) and *tokens*
(documents of 60 to 180 elements, the sum of maxima that is called MaxSim, 32 tokens wanted). Of each world there
are queries whose elements are together in an item, and queries that no item answers.

All contenders rank by the same scores. Those that know no sets find the nearest elements of each query element,
and a compiled loop ranks the items of these. Before every search a large buffer is read, so that no contender
finds its data in the caches, and every search has another query; one thread each. *read* is one pass over a byte
per dimension, measured between the searches: no search that looks at every element can be faster. *recall@10* is the
share of the ten best items of exact search. A contender that is not installed is named: fast-plaid wants a torch of
its own version, and so an environment of its own. With ``--tune`` faiss's lists are read with many settings, and a
second table has the fastest way of each contender that reaches a recall.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LANCE_CPU_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("LANCE_LOG", "error")
os.environ.setdefault("RUST_LOG", "error")

import numpy as np
from numpy.typing import NDArray

from difficulty import DIM, QUERIES, Stopwatch, World
from setnet.errors import SetNetError
from support.peers import NEAREST, elements_then, greedy_scores, maxsim_scores
from support.performance_page import machine, write_section

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Search = Callable[[Floats], Any]
K = 10
RECALLS = (0.9, 0.95, 0.98)
TUNED_PROBES, TUNED_NEAREST = (4, 8, 16, 32, 64, 128, 256), (100, 300, 1000)
WORDS = 32  # tokens of a query
PER_DOCUMENT = 30  # faces of a world per document of its world of tokens: 124 tokens in 5,000 documents


class Sets:
    """The sets of one world in memory, and how they are scored."""

    def __init__(self, kind: str, world: World, folder: Path, tune: bool = False) -> None:
        self.kind, self.world, self.folder = kind, world, folder
        self.index, self.tune = world.index(folder, lists=True), tune
        segments = self.index._reader.snapshot().segments
        self.elements = np.concatenate([segment.elements for segment in segments])
        self.offsets = np.concatenate([[0], np.cumsum(world.counts)])
        self.owner = np.repeat(np.arange(world.items), world.counts)
        self.logistic = self.index.logistic

    def score(self, sims: Floats, offsets: Ids) -> NDArray[np.float64]:
        """Score items by the similarities of their elements with the query's."""
        if self.kind == "tokens":
            return maxsim_scores(sims, offsets)
        return greedy_scores(sims, offsets, self.logistic.w, self.logistic.b)

    def best(self, products: Callable[[Floats], Floats]) -> Search:
        """The plain way: all similarities, all scores."""

        def search(query: Floats) -> Any:
            scores = self.score(products(query), self.offsets)
            best = np.argpartition(-scores, K)[:K]
            return best[np.argsort(-scores[best], kind="stable")]

        return search

    def by_elements(self, nearest: Callable[[Floats, int], Any], most: int = NEAREST) -> Search:
        """The nearest elements of each query element, ``most`` at most, then the exact scores of their items."""

        class Index:
            @staticmethod
            def search(query: Floats, count: int) -> tuple[None, Any]:
                return None, np.asarray(nearest(query, min(count, most if len(query) < 8 else 100)))

        found = elements_then(Index, self.elements, self.offsets, self.owner, self.score)
        return lambda query: found(query, K)

    def documents(self) -> list[Floats]:
        """The elements of each item."""
        return np.split(self.elements, self.offsets[1:-1])


class Documents(World):
    """A world whose items have as many elements as a passage has tokens, drawn from words as frequent as theirs."""

    def __init__(self, kind: str, items: int, seed: int) -> None:
        super().__init__(kind, items, seed)
        self.name = f"documents-{self.name}"
        rng = np.random.default_rng([seed, 1])
        self.people = self.model.people(rng, 20_000)
        self.counts = rng.integers(60, 181, items)
        frequency = 1 / np.arange(10, len(self.people) + 10)
        self.who = rng.choice(len(self.people), self.counts.sum(), p=frequency / frequency.sum())


Ways = Iterator[tuple[str, Search]]


def setnet(sets: Sets) -> Ways:
    matching: dict[str, Any] = {"matching": "maxsim"} if sets.kind == "tokens" else {}

    def way(**options: Any) -> Search:
        sets.index.search(sets.elements[:2], K, threads=1, **matching, **options)  # says if it cannot
        return lambda query: [
            int(hit.id) for hit in sets.index.search(query, K, threads=1, **matching, **options)
        ]

    yield "exact", way()
    for recall in (0.8, *RECALLS) if sets.tune else RECALLS:
        yield f"fast, recall {recall}", way(mode="fast", recall=recall)


def numpy(sets: Sets) -> Ways:
    yield "all products, compiled scores", sets.best(lambda query: sets.elements @ query.T)


def torch(sets: Sets) -> Ways:
    import torch

    torch.set_num_threads(1)
    rows = torch.from_numpy(sets.elements)
    if sets.kind == "faces":
        yield "all products, compiled scores", sets.best(lambda q: (rows @ torch.from_numpy(q).T).numpy())
        return
    longest = int(sets.world.counts.max())
    padded = torch.zeros(sets.world.items, longest, DIM)
    mask = torch.arange(longest) < torch.from_numpy(sets.world.counts)[:, None]
    padded[mask] = rows

    def search(query: Floats) -> Any:
        sims = padded @ torch.from_numpy(query).T
        scores = sims.masked_fill_(~mask[:, :, None], -2).amax(1).sum(1)
        return scores.topk(K).indices.numpy()

    yield "MaxSim of padded documents", search


def faiss(sets: Sets) -> Ways:
    import faiss

    lists = 1 << min(12, max(4, int(np.log2(np.sqrt(len(sets.elements)) * 4))))
    made = sets.folder / f"faiss-IVF{lists}-{sets.world.name}"
    if made.exists():
        coded = faiss.read_index(str(made))
    else:
        coded = faiss.index_factory(DIM, f"IVF{lists},PQ64x4fs", faiss.METRIC_INNER_PRODUCT)
        coded.train(sets.elements[:: max(1, len(sets.elements) // 200_000)])
        coded.add(sets.elements)
        faiss.write_index(coded, str(made))
    for most in TUNED_NEAREST if sets.tune else ():
        for probes in TUNED_PROBES:
            settings = faiss.SearchParametersIVF(nprobe=probes)
            yield (
                f"IVF{lists},PQ64x4fs, {probes} probes, {most} nearest",
                sets.by_elements(lambda q, n, s=settings: coded.search(q, n, params=s)[1], most),
            )
    if sets.tune:
        return
    graph = faiss.IndexHNSWFlat(DIM, 32, faiss.METRIC_INNER_PRODUCT)
    graph.add(sets.elements)
    for probes in (16, 64, 256):
        settings = faiss.SearchParametersIVF(nprobe=probes)
        yield (
            f"IVF{lists},PQ64x4fs, {probes} probes",
            sets.by_elements(lambda q, n, s=settings: coded.search(q, n, params=s)[1]),
        )
    for width in (64, 256):
        settings = faiss.SearchParametersHNSW(efSearch=width)
        yield (
            f"HNSW32, ef {width}",
            sets.by_elements(lambda q, n, s=settings: graph.search(q, min(n, 200), params=s)[1]),
        )


def scann(sets: Sets) -> Ways:
    import scann

    leaves = int(np.sqrt(len(sets.elements)) * 2)
    builder = scann.scann_ops_pybind.builder(sets.elements, NEAREST, "dot_product")
    builder = builder.tree(leaves, 64, training_sample_size=min(200_000, len(sets.elements)))
    index = builder.score_ah(2, anisotropic_quantization_threshold=0.2).build()
    for probes in (16, 64, 256):
        yield (
            f"{leaves} leaves, {probes} searched",
            sets.by_elements(
                lambda q, n, p=probes: index.search_batched(q, final_num_neighbors=n, leaves_to_search=p)[
                    0
                ].astype(np.int64)
            ),
        )


def usearch(sets: Sets) -> Ways:
    from usearch.index import Index

    index = Index(ndim=DIM, metric="ip", dtype="bf16")
    index.add(np.arange(len(sets.elements)), sets.elements, threads=2)

    def search(width: int) -> Search:
        def nearest(query: Floats, count: int) -> Any:
            index.expansion_search = width
            return (
                index.search(query, min(count, 200), threads=1).keys.reshape(len(query), -1).astype(np.int64)
            )

        return sets.by_elements(nearest)

    for width in (64, 256):
        yield f"HNSW, bf16, expansion {width}", search(width)


def qdrant(sets: Sets) -> Ways:
    import qdrant_edge as edge

    whole = sets.kind == "tokens"  # Qdrant's own multivectors
    many = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim) if whole else None
    vectors = edge.EdgeVectorParams(size=DIM, distance=edge.Distance.Dot, multivector_config=many)
    config = edge.EdgeConfig(vectors=vectors, max_search_threads=1)
    folder = tempfile.mkdtemp(prefix="setnet-qdrant-")
    shard = edge.EdgeShard.create(f"{folder}/shard", config)
    rows: Any = sets.documents() if whole else sets.elements
    for at in range(0, len(rows), 1000):
        points = [edge.Point(at + i, row.tolist()) for i, row in enumerate(rows[at : at + 1000])]
        shard.update(edge.UpdateOperation.upsert_points(points))

    def query(vector: Any, count: int, **settings: Any) -> list[int]:
        asked = edge.Query.Nearest(vector.tolist())
        params = edge.SearchParams(**settings)
        return [point.id for point in shard.query(edge.QueryRequest(limit=count, query=asked, params=params))]

    if whole:
        yield "MaxSim of multivectors, exact", lambda q: query(q, K, exact=True)
        return
    shard.optimize()
    for width in (64, 256):
        yield (
            f"HNSW, ef {width}",
            sets.by_elements(lambda q, n, w=width: [query(row, min(n, 200), hnsw_ef=w) for row in q]),
        )


def lancedb(sets: Sets) -> Ways:
    import lancedb
    import lancedb.index
    import pyarrow as pa

    connection = lancedb.connect(tempfile.mkdtemp(prefix="setnet-lance-"))
    whole = sets.kind == "tokens"  # LanceDB's own multivectors
    rows = pa.FixedSizeListArray.from_arrays(sets.elements.ravel(), DIM)
    column = pa.ListArray.from_arrays(sets.offsets.astype(np.int32), rows) if whole else rows
    data = pa.table({"id": np.arange(len(column)), "vector": column})
    table = connection.create_table("elements", data)
    metric = "cosine" if whole else "dot"
    coded = lancedb.index.IvfPq(distance_type=metric, num_partitions=256, num_sub_vectors=32)
    table.create_index("vector", config=coded)

    def query(vector: Any, count: int, probes: int) -> Any:
        asked = table.search(vector, vector_column_name="vector").distance_type(metric)
        found = asked.nprobes(probes).refine_factor(2).select(["id", "_distance"]).limit(count).to_arrow()
        return found.column("id").to_numpy()

    for probes in (16, 64):
        if whole:
            yield f"MaxSim of multivectors, IVF_PQ, {probes} probes", lambda q, p=probes: query(q, K, p)
        else:
            yield (
                f"IVF_PQ, {probes} probes, refined",
                sets.by_elements(lambda q, n, p=probes: query(q, min(n, 200), p).reshape(len(q), -1)),
            )


def numkong(sets: Sets) -> Ways:
    import numkong

    if sets.kind == "faces":
        rows = numkong.dots_pack(sets.elements)

        def products(query: Floats) -> Floats:
            return np.ascontiguousarray(np.asarray(numkong.dots_packed(query, rows)).T)

        yield "all products, compiled scores", sets.best(products)
        return
    documents = [numkong.maxsim_pack(rows) for rows in sets.documents()]

    def search(query: Floats) -> Any:
        packed = numkong.maxsim_pack(query)
        distances = np.array([numkong.maxsim_packed(packed, document) for document in documents])
        best = np.argpartition(distances, K)[:K]
        return best[np.argsort(distances[best], kind="stable")]

    yield "MaxSim of packed documents", search


def fast_plaid(sets: Sets) -> Ways:
    import torch
    from fast_plaid.search import FastPlaid

    if sets.kind == "faces":
        return  # it ranks by MaxSim alone
    torch.set_num_threads(2)
    index = FastPlaid(tempfile.mkdtemp(prefix="setnet-plaid-"), device="cpu")
    index.create([torch.from_numpy(rows) for rows in sets.documents()])
    torch.set_num_threads(1)

    def search(query: Floats, probes: int, full: int) -> list[int]:
        rows = torch.from_numpy(query)[None]
        found = index.search(rows, top_k=K, n_ivf_probe=probes, n_full_scores=full, show_progress=False)
        return [number for number, _ in found[0]]

    for probes, full in ((8, 1024), (32, 4096)):
        yield f"{probes} probes, {full} full scores", lambda q, p=probes, f=full: search(q, p, f)


# a contender: what it is installed as
CONTENDERS: dict[str, tuple[Callable[[Sets], Ways], str]] = {
    "setnet": (setnet, "setnet"),
    "numpy": (numpy, "numpy"),
    "torch": (torch, "torch"),
    "faiss": (faiss, "faiss-cpu"),
    "scann": (scann, "scann"),
    "usearch": (usearch, "usearch"),
    "qdrant": (qdrant, "qdrant-edge-py"),
    "lancedb": (lancedb, "lancedb"),
    "numkong": (numkong, "numkong"),
    "fast-plaid": (fast_plaid, "fast-plaid"),
}


@dataclass
class Row:
    """What one contender did for one kind of query."""

    sets: str
    world: str
    query: str
    who: str
    way: str
    ms: float | None = None
    ratio: float | None = None  # to one pass over a byte per dimension
    recall: float | None = None
    note: str = ""

    def line(self) -> str:
        """Return the row as a line of the table."""
        shown = ((self.ms, "{:.2f}"), (self.ratio, "{:.2f} x"), (self.recall, "{:.3f}"))
        numbers = ("" if value is None else form.format(value) for value, form in shown)
        cells = (self.sets, self.world, self.query, self.who, self.way, *numbers, self.note)
        return f"| {' | '.join(cells)} |"


HEAD = "| sets | world | query | who | way | ms | of reading | recall@10 | |\n|---|---|---|---|---|---|---|---|---|"


@dataclass
class Bench:
    """The rows of a run, printed as they come."""

    args: argparse.Namespace
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        print(row.line(), flush=True)
        self.rows.append(row)

    def run(self, kind: str, world: World) -> None:
        """Build all contenders over a world, and let them take turns at each kind of query."""
        sets = Sets(kind, world, self.args.folder, self.args.tune)
        ways: dict[tuple[str, str], Search] = {}
        for who in self.args.who:
            build, package = CONTENDERS[who]
            note, began = "", time.perf_counter()
            try:
                ways |= {(who, name): search for name, search in build(sets)}
            except ImportError as error:
                note = f"not installed ({package}): {error}"
            except (SetNetError, RuntimeError, ValueError, TypeError) as error:
                note = f"failed: {str(error).splitlines()[0]:.120}"
            took = f"ready after {time.perf_counter() - began:.0f} s"
            self.add(Row(kind, world.kind, "", who, "", note=note or took))
        clock = time.process_time if self.args.processor_time else time.perf_counter
        watch = Stopwatch(sets.elements.size, 0, clock)
        for size in (1, 2, 3) if kind == "faces" else (WORDS,):
            for present in (True, False) if world.kind != "random" else (False,):
                label = f"Q={size}, {'there' if present else 'absent'}"
                self.race(sets, label, world.queries(size, present), ways, watch)

    def race(
        self,
        sets: Sets,
        label: str,
        queries: list[Floats],
        ways: dict[tuple[str, str], Search],
        watch: Stopwatch,
    ) -> None:
        """Let all contenders answer each query, cold; the first query is not counted."""
        read: list[float] = []
        took: dict[tuple[str, str], list[float]] = {key: [] for key in ways}
        shares: dict[tuple[str, str], list[float]] = {key: [] for key in ways}
        plain = sets.best(lambda query: sets.elements @ query.T)
        for query in queries[: self.args.repeats + 1]:
            best = set(plain(query).tolist())
            read.append(watch.cold(watch.read))
            for key, search in ways.items():
                answer: list[Any] = []
                took[key].append(watch.cold(lambda s=search, q=query, a=answer: a.append(s(q))))
                shares[key].append(len(best.intersection(np.asarray(answer[0]).tolist())) / K)
        limit = float(np.median(read[1:]))
        place = (sets.kind, sets.world.kind, label)
        self.add(Row(*place, "memory", "reading a byte per dimension", limit, 1.0, None))
        for (who, name), times in took.items():
            ms = float(np.median(times[1:]))
            self.add(Row(*place, who, name, ms, ms / limit, float(np.mean(shares[who, name]))))


def best_at_recalls(rows: list[Row]) -> str:
    """Return a table of the fastest way of each contender to reach each recall, for each kind of query."""
    lines = ["| world | query | recall@10 | who | way | ms | found |", "|---|---|---|---|---|---|---|"]
    for world, query in dict.fromkeys((row.world, row.query) for row in rows if row.recall is not None):
        for wanted in RECALLS:
            mine = [r for r in rows if (r.world, r.query) == (world, query) and (r.recall or 0) >= wanted]
            for who in dict.fromkeys(row.who for row in mine):
                best = min((row for row in mine if row.who == who), key=lambda row: row.ms or 0)
                found = f"{best.ms:.2f} | {best.recall:.3f}"
                lines.append(f"| {world} | {query} | {wanted} | {who} | {best.way} | {found} |")
    return "\n".join(lines)


def versions(who: list[str]) -> list[str]:
    """Return the packages of some contenders that are installed."""
    found = []
    for name in who:
        package = CONTENDERS[name][1]
        try:
            version(package)
        except PackageNotFoundError:
            continue
        found.append(package)
    return [package for package in found if package != "setnet"]


def main() -> None:
    """Parse, run the worlds, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=100_000, help="items with faces; a 30th of documents")
    parser.add_argument("--repeats", type=int, default=21, choices=range(1, QUERIES), metavar="N")
    parser.add_argument("--seed", type=int, default=11, help="of the worlds")
    parser.add_argument("--worlds", nargs="*", default=["real", "hard", "random"])
    parser.add_argument("--only", nargs="*", choices=("faces", "tokens"), default=("faces", "tokens"))
    parser.add_argument("--who", nargs="*", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "setnet-worlds")
    parser.add_argument(
        "--processor-time", action="store_true", help="of all threads, for a machine that does other work too"
    )
    parser.add_argument(
        "--tune", action="store_true", help="many settings of faiss's lists, and the best at a recall"
    )
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    parser.add_argument("--write", type=Path, help="write the table to this page, as a section of its own")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    made_by = (
        f"Written by `python {' '.join(sys.argv)}` on {machine(*versions(args.who))}. One thread, cold caches, "
        f"medians of {'processor' if args.processor_time else 'wall'} time."
    )
    print(f"{made_by}\n\n{HEAD}")
    bench = Bench(args)
    for kind in args.worlds:
        if "faces" in args.only:
            bench.run("faces", World(kind, args.items, args.seed))
        if "tokens" in args.only:
            bench.run("tokens", Documents(kind, max(50, args.items // PER_DOCUMENT), args.seed))
    if args.json:
        args.json.write_text(
            json.dumps({"made_by": made_by, "rows": [asdict(r) for r in bench.rows]}, indent=1)
        )
    name, table = "peers", "\n".join([HEAD, *(row.line() for row in bench.rows)])
    if args.tune:
        name, table = f"peers-{args.items}", best_at_recalls(bench.rows)
        print(table)
    if args.write:
        write_section(args.write, name, f"## {name.capitalize()}\n\n{made_by}\n\n{table}")


if __name__ == "__main__":
    main()
