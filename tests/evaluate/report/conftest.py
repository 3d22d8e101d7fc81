"""A small record of a stress test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from setnet.evaluate.record import Row, Run


def stress_row(name: str, middle: float, bound: bool = False) -> Row:
    values = {f"ndcg{d}@{f}": [middle - f, middle - f + 1] for d in (10, 30) for f in (2, 3, 4, 5)}
    return Row(name, values, {"bytes": 512, "bytes_per_item": 512}, bound)


@pytest.fixture
def stress_run() -> Callable[..., Run]:
    """Return the function that makes the run, kept in a file or not."""

    def made(path: Path | None = None) -> Run:
        run = Run("stress", {"seed": 0}, path)
        for row in (stress_row("mean", 80), stress_row("a|b <i>", 90), stress_row("bound", 99, bound=True)):
            run.add(row)
        return run

    return made
