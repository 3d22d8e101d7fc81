"""A store that everybody uses at once, with faults, kills and clock jumps, holds what its model holds."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.harness import ROOT, build_shim, program

SHORT = {"index": 400, "library": 250}  # events
PARTS, EVENTS = 50, 10_000  # of the long form, of each kind of store


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes calls fail."""
    built: Path | None = build_shim(tmp_path_factory.mktemp("shim"))
    if built is None:
        pytest.skip("faults are injected by a preloaded C library: Linux and a compiler are needed")
    return built


def simulate(shim: Path, kind: str, seed: int, events: int, folder: Path) -> dict[str, int]:
    """Run a simulation in a process of its own; return how many events of each kind there were."""
    command = program("simulation", kind, str(seed), str(events), str(folder))
    environment = os.environ | {"LD_PRELOAD": str(shim), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-2000:]}"
    counts: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return counts


@pytest.mark.parametrize("kind", SHORT)
def test_a_simulated_store_holds_what_its_model_holds(
    shim: Path, tmp_path: Path, kind: str, count_faults: Callable[..., None]
) -> None:
    counts = simulate(shim, kind, 1, SHORT[kind], tmp_path)
    assert counts["kill"]
    assert counts["fail"]
    count_faults(f"simulated {kind}", "events", SHORT[kind])


@pytest.mark.soak
@pytest.mark.parametrize("kind", SHORT)
@pytest.mark.parametrize("seed", range(2, 2 + PARTS))
def test_a_simulated_store_holds_what_its_model_holds_for_long(
    shim: Path, tmp_path: Path, kind: str, seed: int, count_faults: Callable[..., None]
) -> None:
    simulate(shim, kind, seed, EVENTS, tmp_path)
    count_faults(f"simulated {kind}", "events", EVENTS)
