"""Contenders that take turns at the same work, and the table of their times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from setnet.engine import kernel_level


@dataclass
class Row:
    """One contender's time at one piece of work."""

    part: str
    work: str
    who: str
    threads: int
    minimum_ms: float
    median_ms: float
    read_ratio: float | None = None
    quality: str = ""


class Book:
    """Collects rows and prints them as they come."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.rows: list[Row] = []

    def race(
        self,
        part: str,
        work: str,
        contenders: dict[tuple[str, int], Callable[[int], Any]],
        read: Callable[[], Any] | None,
        quality: dict[str, str] | None = None,
    ) -> None:
        """Let contenders take turns; `read` is the pass over the same bytes that none can beat alone."""
        runs: dict[tuple[str, int], list[float]] = {key: [] for key in contenders}
        limit: list[float] = []
        for key, run in contenders.items():
            with _threads(key[1]):
                run(0)
        for turn in range(self.repeats):
            if read:
                limit.append(milliseconds(read))
            for key, run in contenders.items():
                with _threads(key[1]):
                    runs[key].append(milliseconds(lambda run=run, turn=turn: run(turn)))
        if read:
            self.add(Row(part, work, "reading the bytes once", 1, min(limit), float(np.median(limit)), 1.0))
        for (who, threads), times in runs.items():
            ratio = min(times) / min(limit) if read else None
            row = Row(part, work, who, threads, min(times), float(np.median(times)), ratio)
            row.quality = (quality or {}).get(who, "")
            self.add(row)

    def note(self, part: str, work: str, who: str, value: float, quality: str = "") -> None:
        """Add a single figure."""
        self.add(Row(part, work, who, 1, value, value, None, quality))

    def add(self, row: Row) -> None:
        self.rows.append(row)
        ratio = f"{row.read_ratio:6.2f} x" if row.read_ratio is not None else " " * 8
        print(
            f"{row.part:8} {row.work:34} {row.who:38} {row.threads} {row.minimum_ms:10.3f} "
            f"{row.median_ms:10.3f} {ratio} {row.quality}",
            flush=True,
        )


def milliseconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1e3


def _threads(n: int) -> Any:
    faiss.omp_set_num_threads(n)
    return threadpool_limits(n)


def reader(size: int) -> Callable[[], Any]:
    """A pass over ``size`` bytes of memory at the speed NumPy's vectorised maximum reads them."""
    block = np.ones(size // 8, np.uint64)
    return block.max


def markdown(rows: list[Row], origin: str) -> str:
    """Return the rows of one part as a section of the page."""
    part = rows[0].part
    lines = [
        f"### {part.capitalize()}, kernels {kernel_level()}",
        "",
        origin,
        "",
        "| work | who | threads | min ms | median ms | read | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = f"{row.read_ratio:.2f} x" if row.read_ratio is not None else ""
        lines.append(
            f"| {row.work} | {row.who} | {row.threads} | {row.minimum_ms:.2f} | {row.median_ms:.2f} | {ratio} | {row.quality} |"
        )
    return "\n".join(lines)
