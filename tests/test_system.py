"""The engine works where the system lacks what Linux has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from setnet import SetIndex, system
from setnet.errors import LockedError

ROWS = np.eye(8, dtype=np.float32)


def add_and_search(path: Path) -> list[str]:
    rng = np.random.default_rng(0)
    with SetIndex.create(path, 8) as index:
        index.add([str(i) for i in range(600)], rng.normal(size=(600, 8)), [1] * 600)
        index.add(["wanted"], ROWS[:2], [2])
        index.compact()
        return [hit.id for hit in index.search(ROWS[:2], k=1)]


def test_a_search_works_where_the_system_does_not_tell_cores_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sched_getaffinity", "sysconf"):
        monkeypatch.delattr(os, name, raising=False)
    assert system.usable_cores() == os.cpu_count()
    assert system.total_memory() == 0
    assert add_and_search(tmp_path / "i") == ["wanted"]


def test_peak_memory_is_in_bytes_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    on_linux = system.peak_memory()
    assert on_linux > 10 << 20, "NumPy alone takes more"
    monkeypatch.setattr(sys, "platform", "darwin")  # which counts bytes, not kilobytes
    assert system.peak_memory() <= on_linux // 1000
    monkeypatch.setitem(sys.modules, "resource", None)
    assert system.peak_memory() == 0


WITHOUT_LINUX = """
import os, sys, types
import numpy, pytest, subprocess  # these look for msvcrt themselves
sys.modules["fcntl"] = None
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *given: None)
for name in ("sched_getaffinity", "sysconf", "fork"):
    delattr(os, name)
from pathlib import Path
from tests.test_system import add_and_search
assert add_and_search(Path(sys.argv[1])) == ["wanted"]
"""


def test_nothing_that_only_linux_has_is_needed_at_import(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]  # the child imports this file
    command = [sys.executable, "-c", WITHOUT_LINUX, str(tmp_path / "i")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=["fcntl", "msvcrt"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lock of this system, and that of Windows: its call, answered by the lock of this system."""
    fcntl = pytest.importorskip("fcntl")

    def locking(file: int, mode: int, size: int) -> None:
        assert (mode, size) == (2, 1)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    if request.param == "msvcrt":
        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    return str(request.param)


def test_a_second_writer_is_refused_until_the_first_closes(tmp_path: Path, locks: str) -> None:
    with SetIndex.create(tmp_path / "i", 8):
        with pytest.raises(LockedError, match="open for writing elsewhere"):
            SetIndex.open(tmp_path / "i")
        with SetIndex.open(tmp_path / "i", read_only=True) as reader:
            assert len(reader) == 0
    SetIndex.open(tmp_path / "i").close()


def test_a_lock_that_was_refused_leaves_no_file_open(tmp_path: Path, locks: str) -> None:
    lock = system.FileLock(tmp_path / "lock")
    free = os.dup(0)
    os.close(free)
    with pytest.raises(LockedError, match="locked by another"):
        system.FileLock(tmp_path / "lock")
    again = os.dup(0)
    os.close(again)
    assert again == free
    lock.close()


def test_a_lock_that_nobody_holds_any_more_is_given_back(tmp_path: Path, locks: str) -> None:
    """An interrupt can come after a lock was taken and before its owner knows of it."""
    system.FileLock(tmp_path / "lock")
    system.FileLock(tmp_path / "lock").close()


def test_folders_of_the_user_follow_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("the variables of XDG")
    for name, folder in (
        ("XDG_DATA_HOME", system.data_folder),
        ("XDG_CACHE_HOME", system.cache_folder),
        ("XDG_CONFIG_HOME", system.config_folder),
    ):
        monkeypatch.setenv(name, str(tmp_path / name))
        assert folder() == tmp_path / name / "setnet"
