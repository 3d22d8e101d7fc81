"""Damaged and crafted segment files: errors of our own, never a crash; the long form under sanitizers."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fuzz_segments import run

PROGRAM = Path(__file__).with_name("fuzz_segments.py")


def test_only_errors_of_setnet_come_out_of_damaged_segments() -> None:
    kinds, _ = run(first=0, inputs=2000, seconds=10.0)
    assert kinds["error+ok"] + kinds["error"] > kinds.total() / 2, "most damage is noticed"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_million_damaged_segments_under_sanitizers() -> None:
    command = [sys.executable, str(PROGRAM), "--sanitize", "--inputs", "1000000", "--seconds", "3600"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
