"""Faults at every file-system call of every change: nothing stored is lost, nothing foreign is raised.

The short form tries some of the calls, `make soak` all of them.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the server process imports the same modules

from harness import KINDS, Trials, build_shim
from scenarios import SCENARIOS
from trace_disk import Disk, disks

SOAK = bool(os.environ.get("SETNET_SOAK"))
ENGINE = [name for name in SCENARIOS if not name.startswith("library")]
LIBRARY = [name for name in SCENARIOS if name.startswith("library")]


@pytest.fixture(scope="module")
def fault_photos(tmp_path_factory: pytest.TempPathFactory, compose: Callable[..., None]) -> Iterator[None]:
    """Photos for the library's scenarios, outside the folder where calls fail."""
    photos = tmp_path_factory.mktemp("photos")
    for name, people in {"old/a": ("P001",), "old/b": ("P003", "P005"), "new/d": ("P010",)}.items():
        compose(photos / f"{name}.jpg", people)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETNET_FAULT_PHOTOS", str(photos))
        yield


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    with _server(tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="module")
def library_trials(tmp_path_factory: pytest.TempPathFactory, fault_photos: None) -> Iterator[Trials]:
    with _server(tmp_path_factory, "library") as server:
        yield server


def _server(folders: pytest.TempPathFactory, *warm: str) -> Trials:
    shim = build_shim(folders.mktemp("shim"))
    if shim is None:
        pytest.skip("faults are injected by a preloaded C library: Linux and a compiler are needed")
    return Trials(shim, *warm)


class Bench:
    """One scenario with its base, and the contents before and after an undisturbed change."""

    def __init__(self, trials: Trials, name: str, folder: Path) -> None:
        self.trials, self.name, self.scenario = trials, name, SCENARIOS[name]
        self.base, self.root = folder / "base", folder / "root"
        self.base.mkdir()
        self.scenario.make(self.base)
        self.before = self._contents(lambda: None)
        self.calls = 0
        self.after = self._contents(self._undisturbed)

    def _undisturbed(self) -> None:
        outcome = self.trials.run(self.root, self.name)
        assert outcome.ended == "done", outcome
        self.calls = outcome.calls

    def _contents(self, change: Callable[[], None]) -> Any:
        with self.copy():
            change()
            return self.scenario.contents(self.root)

    def copy(self) -> Copy:
        return Copy(self.base, self.root)


class Copy:
    """A copy of a folder that lasts as long as a block."""

    def __init__(self, base: Path, root: Path) -> None:
        self._base, self._root = base, root

    def __enter__(self) -> None:
        shutil.copytree(self._base, self._root)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._root)


def inject(bench: Bench, kind: str, step: int) -> None:
    first = 1 + zlib.crc32(f"{bench.name} {kind}".encode()) % step  # other calls for other kinds
    for at in range(first, bench.calls + 1, step):
        for go_on in (False, True):
            with bench.copy():
                outcome = bench.trials.run(bench.root, bench.name, at=at, kind=KINDS[kind], go_on=go_on)
                case = f"{kind} at call {at} of {bench.name}, go on: {go_on}: {outcome}"
                assert not {"foreign", "crashed"} & set(outcome.ended.replace(",", "").split()), case
                done = go_on or outcome.ended == "done"
                try:
                    contents = bench.scenario.contents(bench.root)
                except BaseException as error:
                    raise AssertionError(case) from error
                assert contents in ([bench.after] if done else [bench.before, bench.after]), case


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ENGINE)
def test_a_fault_at_any_call_loses_nothing(trials: Trials, tmp_path: Path, name: str, kind: str) -> None:
    inject(Bench(trials, name, tmp_path), kind, 1 if SOAK else 23)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIBRARY)
def test_a_fault_at_any_call_loses_nothing_of_a_library(
    library_trials: Trials, tmp_path: Path, name: str, kind: str
) -> None:
    inject(Bench(library_trials, name, tmp_path), kind, 2 if SOAK else 61)


@pytest.mark.parametrize("name", ENGINE)
def test_a_power_cut_at_any_moment_loses_nothing(trials: Trials, tmp_path: Path, name: str) -> None:
    bench = Bench(trials, name, tmp_path)
    trace = tmp_path / "trace"
    with bench.copy():
        disk = Disk(bench.root, bench.root)
        trials.run(bench.root, name, trace=str(trace))
    chance = random.Random(name)
    survives: list[random.Random | None] = [None, *([chance] * (6 if SOAK else 1))]
    for at, (state, done) in enumerate(disks(trace.read_bytes(), disk)):
        if not SOAK and at % 5:
            continue
        for luck in survives:
            cut = tmp_path / "cut"
            state.write(cut, luck)
            try:
                contents = bench.scenario.contents(cut)
            except BaseException as error:
                raise AssertionError(f"power cut after operation {at} of {name}") from error
            assert contents in ([bench.after] if done else [bench.before, bench.after])
            shutil.rmtree(cut)
