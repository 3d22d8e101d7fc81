"""Servers of trials for the tests of faults, and the number of trials at the end of a run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from setnet.faces.registry import write_model_entry
from tests.faults.bench import Bench
from tests.faults.harness import Trials, build_shim
from tests.support.small_models import write_small_model

# programs of their own, not tests
collect_ignore = ["cut_commit.py", "fork_server.py", "full_disk.py", "simulation.py"]


@pytest.fixture(scope="session")
def is_soak() -> bool:
    """Whether all trials are made (`make soak`), or the few that every run of the tests can afford."""
    return bool(os.environ.get("SETNET_SOAK"))


@pytest.fixture(scope="session")
def fault_photos(tmp_path_factory: pytest.TempPathFactory, compose: Callable[..., None]) -> Iterator[None]:
    """Photos for the library's scenarios, outside the folder where calls fail."""
    photos = tmp_path_factory.mktemp("photos")
    for name, people in {"old/a": ("P001",), "old/b": ("P003", "P005"), "new/d": ("P010",)}.items():
        compose(photos / f"{name}.jpg", people)
    small = write_small_model(photos / "small.onnx")
    write_model_entry(small, name="small", dim=24, calibration={"w": 20.0, "b": -8.0})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETNET_FAULT_PHOTOS", str(photos))
        yield


@pytest.fixture(scope="session")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    """Trials of an index."""
    with _server(tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def library_trials(tmp_path_factory: pytest.TempPathFactory, fault_photos: None) -> Iterator[Trials]:
    """Trials of a library."""
    with _server(tmp_path_factory, "library") as server:
        yield server


@pytest.fixture(scope="session")
def bench_of(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[str], Bench]:
    """Return the function that gives the bench of a scenario, made once."""

    @cache
    def made(name: str) -> Bench:
        server = "library_trials" if name.startswith("library") else "trials"
        return Bench(request.getfixturevalue(server), name, tmp_path_factory.mktemp(name))

    return made


def _server(folders: pytest.TempPathFactory, *warm: str) -> Trials:
    shim = build_shim(folders.mktemp("shim"))
    if shim is None:
        pytest.skip("faults are injected by a preloaded C library: Linux and a compiler are needed")
    return Trials(shim, *warm)


@pytest.fixture
def count_faults(record_property: Callable[[str, object], None]) -> Callable[[str, str, int], None]:
    """Return the function that notes how many faults of a kind were injected into what."""

    def count(name: str, kind: str, number: int) -> None:
        record_property(f"faults: {name}, {kind}", number)

    return count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many faults the tests injected, by scenario and kind."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        counts.update(
            {name: number for name, number in report.user_properties if name.startswith("faults: ")}
        )
    if counts:
        terminalreporter.section("faults injected")
        for name, number in sorted(counts.items()):
            terminalreporter.write_line(f"{number:8d}  {name.removeprefix('faults: ')}")
        terminalreporter.write_line(f"{counts.total():8d}  in all")
