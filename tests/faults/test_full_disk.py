"""A full disk, at every size from no space to enough: a clear error, nothing lost, space given back."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.harness import ROOT, program

INDEX = ["create", "add", "upsert", "delete", "compact", "repair", "backup"]
LIBRARY = ["library-index", "library-create", "library-forget", "library-person"]
IS_SOAK = bool(os.environ.get("SETNET_SOAK"))
SOME = ["add", "compact", "backup", "library-index"]


@pytest.fixture(scope="session")
def can_mount() -> None:
    """Skip where a process may not mount a disk of its own."""
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=4k", "setnet-test", "/mnt"]
    if not shutil.which("unshare") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk is mounted with `unshare -rm mount -t tmpfs`, which is not possible here")


@pytest.mark.parametrize("name", INDEX + LIBRARY if IS_SOAK else SOME)
def test_a_full_disk_is_an_error_of_ours_and_loses_nothing(
    can_mount: None, fault_photos: None, tmp_path: Path, name: str, count_faults: Callable[..., None]
) -> None:
    pages = 1 if IS_SOAK else 61 if name in LIBRARY else 17  # between two sizes
    command = ["unshare", "-rm", *program("full_disk", name, str(pages), str(tmp_path))]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    count_faults(name, "small disk", int(done.stdout))
