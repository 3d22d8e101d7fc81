"""Faults at every file-system call of every change: nothing stored is lost, nothing foreign is raised.

The short form tries some of the calls, `make soak` all of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

from tests.faults.bench import Bench
from tests.faults.harness import KINDS, Outcome
from tests.faults.scenarios import SCENARIOS

ENGINE = [name for name in SCENARIOS if not name.startswith("library")]
LIBRARY = [name for name in SCENARIOS if name.startswith("library")]


def inject(bench: Bench, kind: str, step: int) -> int:
    """Inject a fault at every ``step``-th call; return the number of faults.

    After a fault a trial stops or goes on: at every call both are tried, at some calls one of them in turn.
    """
    injected, failures = 0, []
    first = 1 + zlib.crc32(f"{bench.name} {kind}".encode()) % step  # other calls for other kinds
    for turn, at in enumerate(range(first, bench.calls + 1, step)):
        ways = (False, True) if step == 1 else ((turn + KINDS[kind]) % 2 == 1,)
        for go_on in ways if kind != "kill" else (False,):
            with bench.copy():
                outcome = bench.trials.run(bench.root, bench.name, at=at, kind=KINDS[kind], go_on=go_on)
                wrong = problem_of(outcome, go_on) or bench.loss(bench.root, bench.possible(outcome))
                if wrong:
                    failures.append(f"{kind} at call {at} of {bench.name}: {outcome}: {wrong}")
                injected += 1
    assert not failures, f"{len(failures)} of {injected}: " + "\n".join(failures[:5])
    return injected


def problem_of(outcome: Outcome, go_on: bool) -> str | None:
    """Return what is wrong with the end of a trial by itself."""
    if {"foreign", "crashed"} & set(outcome.ended.replace(",", "").split()):
        return "an exception that is not ours"
    return "going on did not work" if go_on and not outcome.ended.endswith("again done") else None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ENGINE)
def test_a_fault_at_any_call_loses_nothing(
    bench_of: Callable[[str], Bench], name: str, kind: str, is_soak: bool, count_faults: Callable[..., None]
) -> None:
    count_faults(name, kind, inject(bench_of(name), kind, 1 if is_soak else 23))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIBRARY)
def test_a_fault_at_any_call_loses_nothing_of_a_library(
    bench_of: Callable[[str], Bench], name: str, kind: str, is_soak: bool, count_faults: Callable[..., None]
) -> None:
    count_faults(name, kind, inject(bench_of(name), kind, 1 if is_soak else 61))
