"""A full disk, at every size from no space to enough: a clear error, nothing lost, space given back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("full_disk.py")
STEPS = {  # pages between two sizes, in the short form
    "create": 9,
    "add": 17,
    "upsert": 17,
    "delete": 9,
    "compact": 17,
    "tag": 9,
    "repair": 17,
    "backup": 17,
    "library-create": 61,
    "library-index": 61,
    "library-forget": 61,
    "library-person": 61,
}


@pytest.fixture(scope="session")
def can_mount() -> None:
    """Skip where a process may not mount a disk of its own."""
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=4k", "setnet-test", "/mnt"]
    if not shutil.which("unshare") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk is mounted with `unshare -rm mount -t tmpfs`, which is not possible here")


@pytest.mark.parametrize("name", STEPS)
def test_a_full_disk_is_an_error_of_ours_and_loses_nothing(
    can_mount: None,
    fault_photos: None,
    tmp_path: Path,
    name: str,
    is_soak: bool,
    record_property: Callable[[str, object], None],
) -> None:
    step = "1" if is_soak else str(STEPS[name])
    command = ["unshare", "-rm", sys.executable, str(PROGRAM), name, step, str(tmp_path)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    record_property(f"faults: {name}, small disk", int(done.stdout))
