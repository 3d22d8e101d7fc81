"""What the server adds to the engine: searches, totals, later pages and `/status`.

    python benchmarks/rest.py                                  # 50,000 and 549,000 photos, built once
    python benchmarks/rest.py --write docs/performance.md      # the table, between its two marks

Engine and server take turns on the same queries (two and three people, 50 photos). Wall times are those of a
client on this machine; processor times, of the engine's process and of the server's, say more on a machine that
has other work to do. Pages are those of an answer with every photo in it (`at_least` 0), read one after another.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from setnet.engine import SetIndex
from support.performance_page import machine, write_section
from web import Client, K, Vectors, bodies, build, cpu_seconds, queries, serving

PAGES = 400  # of 50 photos: all that an answer has


class Times:
    """Milliseconds of some calls."""

    def __init__(self) -> None:
        self.all: list[float] = []

    def run(self, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        self.all.append((time.perf_counter() - start) * 1000)
        return result

    def __str__(self) -> str:
        return f"{min(self.all):.1f} / {statistics.median(self.all):.1f}"

    def over(self, other: Times) -> str:
        low = min(self.all) / min(other.all)
        return f"{self} ({low:.2f} / {statistics.median(self.all) / statistics.median(other.all):.2f} x)"


Rows = dict[str, str]


def searches(client: Client, engine: SetIndex, query_sets: list[Vectors], rounds: int) -> Rows:
    """Let the engine and the server answer in turn, with and without totals."""
    times = {name: Times() for name in ("engine", "rest", "engine totals", "rest totals")}
    plain = bodies(query_sets)
    counting = [json.dumps(json.loads(body) | {"totals": True}).encode() for body in plain]
    for number in range(rounds + 1):
        if number == 1:  # the first round reads the files into memory
            for kept in times.values():
                kept.all.clear()
        for query, body, with_totals in zip(query_sets, plain, counting, strict=True):
            hits = times["engine"].run(lambda q=query: engine.search(q, k=K, at_least=1))
            answer = times["rest"].run(lambda b=body: client.search(b))
            if [h.id for h in hits] != [h["id"] for h in answer["hits"]]:
                raise SystemExit("the server answers something else than the engine")
            found = times["engine totals"].run(lambda q=query: engine.search(q, len(engine), at_least=1))
            counted = times["rest totals"].run(lambda b=with_totals: client.search(b))
            if sum(total["photos"] for total in counted["totals"]) != len(found):
                raise SystemExit("the server counts other totals than the engine")
    return {
        "engine, top 50": str(times["engine"]),
        "server, seen by the client": times["rest"].over(times["engine"]),
        "engine, all with a match": times["engine totals"].over(times["engine"]),
        "server with `totals`, client": times["rest totals"].over(times["engine totals"]),
    }


def processor(client: Client, pid: int, engine: SetIndex, query_sets: list[Vectors], rounds: int) -> Rows:
    """Compare processor times of searches, the least of some rounds."""
    sent = bodies(query_sets)
    direct, served = [], []
    for _ in range(rounds):
        start = time.process_time()
        for query in query_sets:
            engine.search(query, k=K, at_least=1)
        direct.append((time.process_time() - start) / len(query_sets) * 1000)
        start = cpu_seconds(pid)
        for body in sent:
            client.search(body)
        served.append((cpu_seconds(pid) - start) / len(sent) * 1000)
    a, b = min(direct), min(served)
    return {"processor ms, engine": f"{a:.1f}", "processor ms, server": f"{b:.1f} ({b / a:.2f} x)"}


def read(client: Client, body: bytes, most: int, pause: float = 0.0, **more: Any) -> list[float]:
    """Read an answer page by page; return the milliseconds of each."""
    query, cursor = json.loads(body) | more, None
    times, seen = Times(), set()
    for number in range(most):
        sent = json.dumps(query | {"cursor": cursor}).encode()
        answer = times.run(lambda sent=sent: client.search(sent))
        new = {hit["id"] for hit in answer["hits"]}
        if len(new) != len(answer["hits"]) or new & seen:
            raise SystemExit(f"page {number + 1} has photos of a page before")
        seen |= new
        cursor = answer["cursor"]
        if cursor is None:
            break
        time.sleep(pause)
    return times.all


def pages(client: Client, query_sets: list[Vectors]) -> Rows:
    """Read whole answers page by page: without a pause, and like somebody who looks at them."""
    sent = bodies(query_sets)
    usual = _least([read(client, body, PAGES) for body in sent])
    answers = [read(client, body, PAGES, at_least=0) for body in sent]
    best = _least(answers)
    if len(best) != PAGES:
        raise SystemExit(f"{len(best)} pages of {K} instead of {PAGES}")
    slowly = _least([read(client, body, 60, pause=0.1, at_least=0) for body in sent])
    return {
        "pages 1, 2, ... of photos with a match": ", ".join(f"{page:.1f}" for page in usual),
        "page 1 of all photos": f"{best[0]:.1f}",
        "page 2": f"{best[1]:.1f}",
        "page 10": f"{best[9]:.1f}",
        f"page {PAGES}": f"{best[-1]:.1f}",
        "slowest page": _slowest(best),
        "slowest of 60 pages, 0.1 s between them": _slowest(slowly),
        f"all {PAGES} pages": f"{min(map(sum, answers)) / 1000:.2f} s",
    }


def _least(answers: list[list[float]]) -> list[float]:
    """Return the least time of each page that all of the answers have."""
    return [min(times) for times in zip(*answers, strict=False)]


def _slowest(pages: list[float]) -> str:
    number = max(range(len(pages)), key=lambda n: pages[n])
    return f"{pages[number]:.1f}: number {number + 1}, {pages[number] / pages[0]:.1f} x the first"


def facts(url: str, rounds: int = 40) -> Rows:
    """Ask for `/status`."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def ask() -> bytes:
        connection.request("GET", "/api/v1/status")
        return connection.getresponse().read()

    times = Times()
    for _ in range(rounds):
        times.run(ask)
    return {"`/status`": str(times)}


def measured(world: Path, items: int, rounds: int) -> Rows:
    build(world, items)
    query_sets = queries(16)
    with SetIndex.open(world / "library" / "index", read_only=True) as engine, serving(world) as (url, pid):
        client = Client(url)
        return {
            **searches(client, engine, query_sets, rounds),
            **processor(client, pid, engine, query_sets, rounds),
            **pages(client, query_sets[:3]),
            **facts(url),
        }


def table(columns: dict[int, Rows]) -> str:
    names = list(next(iter(columns.values())))
    lines = [
        "| milliseconds: least / median | " + " | ".join(f"{items:,} photos" for items in columns) + " |",
        "|---" * (1 + len(columns)) + "|",
        *(f"| {name} | " + " | ".join(rows[name] for rows in columns.values()) + " |" for name in names),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=Path, default=Path("/tmp/setnet-web-worlds"))
    parser.add_argument("--items", type=int, nargs="+", default=[50_000, 549_000])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--write", type=Path, help="put the table into this Markdown file")
    options = parser.parse_args()
    columns = {
        items: measured(options.worlds / f"world-{items}", items, options.rounds) for items in options.items
    }
    text = (
        "## The server beside the engine\n\n"
        f"Written by `python benchmarks/rest.py --write docs/performance.md` on {machine()}.\n"
        f"{_WHAT}{_BUSY if os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0)) else ''}\n\n{table(columns)}"
    )
    print(text)
    if options.write:
        write_section(options.write, "server", text)


_WHAT = (
    "Engine and server answered in turn; a ratio is to the engine, with `totals` to the engine's own search for "
    "all items with a match. Pages are of 50 photos; the answers have the photos with a match, or all photos "
    "(`at_least` 0), which are ranked further and further down. Times of pages are the least of three answers."
)

_BUSY = " The machine had much other work to do: only the processor times can be relied on."

if __name__ == "__main__":
    main()
