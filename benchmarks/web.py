"""Load on the server: `POST /search` with descriptors on a large library, beside the library in one process.

    python benchmarks/web.py                      # builds a world of 549,000 photos once, then measures
    python benchmarks/web.py --world /tmp/world   # where it is kept and found again

Prints, measured in one run: the time of a request from one client against the time of the library alone, the
requests per second that 16 clients get beside those that a thread per core gets from the library directly, the
processor time of a request, and the memory of the server over 10,000 requests.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from setnet.heads import unit
from setnet.library import Library, PhotoHit, PhotoQuery, QueryPerson

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.invented_library import BATCH, Vectors, face_counts, fill
from tests.support.live_server import server_on

DIM = 128
IDENTITIES = 30_000
K = 50
ROUNDS = 5


def identities() -> Vectors:
    return unit(np.random.default_rng(7).normal(size=(IDENTITIES, DIM)))


def views(people: Vectors, chance: np.random.Generator) -> Vectors:
    """Return other photos of the same people: similarity about 0.8."""
    return unit(people + chance.normal(size=people.shape) * (0.75 / np.sqrt(DIM)))


def build(world: Path, items: int) -> None:
    """Make the library once; the mean makes its set vectors in no time, a trained head in an hour."""
    if not (world / "complete").exists():
        fill(world / "library", _batches(items), head="mean")
        (world / "complete").touch()


def _batches(items: int) -> Iterator[list[Vectors]]:
    chance = np.random.default_rng(11)
    people = identities()
    start = time.perf_counter()
    for at in range(0, items, BATCH):
        counts = face_counts(chance, min(BATCH, items - at))
        faces = views(people[chance.integers(0, IDENTITIES, counts.sum())], chance)
        yield np.split(faces, np.cumsum(counts)[:-1])
        print(f"\r  {at + len(counts):,} photos, {time.perf_counter() - start:.0f} s", end="", flush=True)
    print()


def queries(number: int) -> list[Vectors]:
    """Return queries of two and three people in turn."""
    chance = np.random.default_rng(13)
    people = identities()
    return [views(people[chance.integers(0, IDENTITIES, 2 + n % 2)], chance) for n in range(number)]


def find(library: Library, query: Vectors) -> tuple[PhotoHit, ...]:
    """Return the photos that the server answers with."""
    return library.search(
        PhotoQuery([QueryPerson(f"person {n}", row[None]) for n, row in enumerate(query, 1)], k=K)
    ).hits


@contextmanager
def serving(world: Path) -> Iterator[tuple[str, int]]:
    """Run `setnet serve`; yield its address and process id."""
    with server_on(world / "library") as server:
        yield server.url, server.process.pid


class Client:
    """One connection that is kept open."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)

    def search(self, body: bytes) -> dict[str, Any]:
        """Return the answer."""
        self._connection.request("POST", "/api/v1/search", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {data[:200]!r}")
        found: dict[str, Any] = json.loads(data)
        return found


def bodies(query_sets: list[Vectors]) -> list[bytes]:
    return [
        json.dumps(
            {"people": [{"descriptors": [row.tolist()]} for row in q], "limit": K, "mode": "exact"}
        ).encode()
        for q in query_sets
    ]


def one_client(url: str, library: Library, query_sets: list[Vectors]) -> None:
    """Query the library and the server in turn, so that both see the same machine."""
    client = Client(url)
    direct: list[float] = []
    served: list[float] = []
    searching: list[float] = []
    for number, (query, body) in enumerate(zip(query_sets, bodies(query_sets), strict=True)):
        start = time.perf_counter()
        hits = find(library, query)
        middle = time.perf_counter()
        answer = client.search(body)
        end = time.perf_counter()
        if [hit.photo.id for hit in hits] != [h["id"] for h in answer["hits"]]:
            raise SystemExit("the server answers something else than the library")
        if number >= 5:  # the first ones read the files into memory
            direct.append(middle - start)
            served.append(end - middle)
            searching.append(answer["seconds"]["search"])
    a, b, c = (statistics.median(times) * 1000 for times in (direct, served, searching))
    print(f"one client: library {a:.1f} ms, server {b:.1f} ms, ratio {b / a:.2f} (its search {c:.1f} ms)")


class Load:
    """Threads that call as fast as they are answered, in slices of time."""

    def __init__(self, call: Callable[[int, int], None], threads: int) -> None:
        self._call = call
        self._threads = threads
        self.times: list[float] = []
        self.failures: list[str] = []
        self.seconds = 0.0

    def run(self, seconds: float) -> None:
        """Call for some seconds."""
        start = time.perf_counter()
        until = start + seconds

        def work(thread: int) -> None:
            turn = 0
            while (began := time.perf_counter()) < until:
                try:
                    self._call(thread, turn)
                except Exception as error:
                    self.failures.append(str(error))
                self.times.append(time.perf_counter() - began)
                turn += 1

        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(work, range(self._threads)))
        self.seconds += time.perf_counter() - start

    @property
    def rate(self) -> float:
        return len(self.times) / self.seconds

    def report(self, what: str) -> None:
        p50, p95 = np.percentile(self.times, [50, 95]) * 1000
        print(
            f"{what}: {self.rate:.1f} a second, p50 {p50:.0f} ms, p95 {p95:.0f} ms, {len(self.failures)} errors"
        )
        if self.failures:
            print("  first error:", self.failures[0])


def cpu_seconds(pid: int) -> float:
    """Return the processor time a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Return the private memory of a process in MB; mapped index files are the system's to keep or drop."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")


def flat_memory(url: str, pid: int, sent: list[bytes], requests: int, clients: int) -> None:
    """Print the server's memory while it answers `requests`."""
    done = 0
    lock = threading.Lock()
    marks: list[str] = []
    step = max(1, requests // 10)

    def work(client: int) -> None:
        nonlocal done
        connection = Client(url)
        while True:
            with lock:
                done += 1
                number = done
            if number > requests:
                return
            connection.search(sent[number % len(sent)])
            if number % step == 0:
                marks.append(f"{number:,}: {memory(pid):.0f}")

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    print("memory of the server in MB after requests:", ", ".join(marks))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--world", type=Path, default=Path("/tmp/setnet-web-world"))
    parser.add_argument("--items", type=int, default=549_000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--requests", type=int, default=10_000)
    options = parser.parse_args()
    build(options.world, options.items)
    query_sets = queries(64)
    with Library.open(options.world / "library") as library:
        print(
            f"{library.photos.counts().photos:,} photos, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        with serving(options.world) as (url, pid):
            one_client(url, library, query_sets)
            sent = bodies(query_sets)
            clients = [Client(url) for _ in range(options.clients)]

            def direct(client: int, turn: int) -> None:
                find(library, query_sets[(client * 7 + turn) % len(query_sets)])

            def served(client: int, turn: int) -> None:
                clients[client].search(sent[(client * 7 + turn) % len(sent)])

            # In turns, so that both see the same machine; the library alone with a thread per core.
            by_library, by_server = Load(direct, os.cpu_count() or 1), Load(served, options.clients)
            used = 0.0
            for _ in range(ROUNDS):
                by_library.run(options.seconds / ROUNDS)
                before = cpu_seconds(pid)
                by_server.run(options.seconds / ROUNDS)
                used += cpu_seconds(pid) - before
            by_library.report("library alone")
            by_server.report(f"server, {options.clients} clients")
            each = used / len(by_server.times) * 1000
            print(
                f"server / library {by_server.rate / by_library.rate:.2f}; {each:.1f} ms of processor per request"
            )
            flat_memory(url, pid, sent, options.requests, options.clients)


if __name__ == "__main__":
    main()
