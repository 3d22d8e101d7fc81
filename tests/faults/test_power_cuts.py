"""Power cuts at every moment of every change: what was synced survives, of the rest any part."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.bench import Bench
from tests.faults.scenarios import SCENARIOS
from tests.faults.trace_disk import Disk, disks

ENGINE = [name for name in SCENARIOS if not name.startswith("library")]
LIBRARY = [name for name in SCENARIOS if name.startswith("library")]


def cut_power(bench: Bench, folder: Path, step: int, tries: int) -> int:
    """Cut the power after every ``step``-th operation, each with ``tries`` ways of luck; return how often."""
    trace, cut = folder / "trace", folder / "cut"
    with bench.copy():
        disk = Disk(bench.root, bench.root)
        bench.trials.run(bench.root, bench.name, trace=str(trace))
    chance = random.Random(bench.name)
    survives: list[random.Random | None] = [None, *([chance] * tries)]
    number, failures = 0, []
    for at, (state, is_done) in enumerate(disks(trace.read_bytes(), disk)):
        for luck in survives if at % step == 0 else []:
            state.write(cut, luck)
            possible = [bench.after] if is_done else [bench.before, bench.after]
            if wrong := bench.loss(cut, possible):
                failures.append(f"power cut after operation {at} of {bench.name}: {wrong}")
            shutil.rmtree(cut)
            number += 1
    assert not failures, f"{len(failures)} of {number}: " + "\n".join(failures[:5])
    return number


@pytest.mark.parametrize("name", ENGINE)
def test_a_power_cut_at_any_moment_loses_nothing(
    bench_of: Callable[[str], Bench],
    tmp_path: Path,
    name: str,
    is_soak: bool,
    count_faults: Callable[..., None],
) -> None:
    step, tries = (1, 4) if is_soak else (5, 1)
    count_faults(name, "power cut", cut_power(bench_of(name), tmp_path, step, tries))


@pytest.mark.parametrize("name", LIBRARY)
def test_a_power_cut_at_any_moment_loses_nothing_of_a_library(
    bench_of: Callable[[str], Bench],
    tmp_path: Path,
    name: str,
    is_soak: bool,
    count_faults: Callable[..., None],
) -> None:
    step, tries = (1, 2) if is_soak else (29, 1)
    count_faults(name, "power cut", cut_power(bench_of(name), tmp_path, step, tries))
