"""Faults at every file-system call of every change: nothing stored is lost, nothing foreign is raised."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import KINDS, Trials, build_shim
from scenarios import CHANGES, after, before, contents_of, elements, make_base
from trace_disk import Disk, disks

from setnet import SetIndex

SOAK = bool(os.environ.get("SETNET_SOAK"))
STEP = 1 if SOAK else 9


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    shim = build_shim(tmp_path_factory.mktemp("shim"))
    if shim is None:
        pytest.skip("faults are injected by a preloaded C library: Linux and a compiler are needed")
    with Trials(shim) as server:
        yield server


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("base") / "index"
    make_base(root)
    return root


def verify(root: Path, change: str, done: bool, later: bool = False) -> None:
    allowed = [after(change)] if done else [before(), after(change)]
    if later:
        for held in allowed:
            held["later"] = (elements(99).tobytes(), ())
    with SetIndex.open(root) as index:
        assert index.check().problems == []
        assert contents_of(index) in allowed
        index.compact()
        assert contents_of(index) in allowed
    leftovers = root / "quarantine"
    assert not leftovers.exists() or not list(leftovers.iterdir())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_fault_at_any_call_loses_nothing(trials, base, tmp_path, change, kind):
    root = tmp_path / "index"
    shutil.copytree(base, root)
    calls = trials.run(root, change).calls
    assert calls > 10
    shutil.rmtree(root)
    for at in range(1 + hash((change, kind)) % STEP if STEP > 1 else 1, calls + 1, STEP):
        for go_on in (False, True):
            shutil.copytree(base, root)
            outcome = trials.run(root, change, at=at, kind=KINDS[kind], go_on=go_on)
            where = f"{kind} at call {at} of {change}, go on: {go_on}: {outcome}"
            assert outcome.ended in ("done", "refused", "interrupted"), where
            try:
                verify(root, change, outcome.ended == "done", go_on)
            except BaseException as error:
                raise AssertionError(where) from error
            shutil.rmtree(root)
