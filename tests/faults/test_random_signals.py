"""Random kills and Ctrl-C's in random sequences of changes: what was acknowledged is there.

The one change that was under way is stored as a whole or not at all. The next trial goes on with what the
last one left.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import Trials, Walk
from tests.faults.random_walk import STORES

SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT}
LONGEST = {"index": 0.12, "library": 0.5}  # seconds until the signal: opening and some changes


def possible_states(kind: str, state: Any, reports: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the states that the reports of a walk allow: with or without the change under way."""
    under_way: Any = None
    for name, *more in reports:
        if name == "begin":
            under_way = more[0]
        elif name == "end":
            state, under_way = STORES[kind].apply(state, under_way), None
    return [state] + ([STORES[kind].apply(state, under_way)] if under_way else [])


def shake(trials: Trials, kind: str, name: str, root: Path, number: int) -> None:
    """Let ``number`` children change one store until a signal comes, each after a random time."""
    store, chance = STORES[kind], random.Random(f"{kind} {name}")
    root.mkdir()
    state = store.make(root)
    for trial in range(number):
        after = chance.uniform(0, LONGEST[kind])
        walk = Walk(str(root), kind, chance.randrange(10**9), state, SIGNALS[name], after)
        reports = trials.walk(walk)
        case = f"{name} in trial {trial} of {kind}: {reports[-12:]}"
        assert "hung" not in {report[0] for report in reports}, f"{case}\n{reports[-2][1]}"  # with its stacks
        if name == "interrupt":
            assert ["closed"] in reports, case  # nothing foreign came out, and going on was possible
        else:
            assert not {"foreign", "interrupted"} & {report[0] for report in reports}, case
        possible = possible_states(kind, state, reports)
        try:
            found = store.contents(root)
        except BaseException as error:
            raise AssertionError(case) from error
        fitting = [some for some in possible if store.expected(some) == found]
        assert fitting, case
        state = fitting[0]


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_at_a_random_moment_loses_nothing(
    trials: Trials, tmp_path: Path, name: str, is_soak: bool, count_faults: Callable[..., None]
) -> None:
    number = 800 if is_soak else 8
    shake(trials, "index", name, tmp_path / "root", number)
    count_faults("random changes of an index", name, number)


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_at_a_random_moment_loses_nothing_of_a_library(
    library_trials: Trials, tmp_path: Path, name: str, is_soak: bool, count_faults: Callable[..., None]
) -> None:
    number = 200 if is_soak else 3
    shake(library_trials, "library", name, tmp_path / "root", number)
    count_faults("random changes of a library", name, number)
