"""A run that is killed or stopped leaves the old descriptors in use, and the next goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from setnet.faces.registry import write_model_entry
from setnet.library import Library
from tests.support.small_models import write_small_model

# Small batches, so that a kill finds the run between two of them; after seven photos it says so and waits.
RUN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from setnet.library import Library
from setnet.library import index_run
index_run.BATCH_PHOTOS, index_run.BATCH_SECONDS = 2, 1e9

def wait(now):
    if now.done == 7:
        print("waits", flush=True)
        while True:
            time.sleep(0.01)

report = Library.reembed(sys.argv[1], sys.argv[2], workers=1, progress=wait)
print(report.changed, report.interrupted, flush=True)
"""


@pytest.fixture
def many(tmp_path: Path, compose: Callable[..., None]) -> Path:
    """A library of a dozen photos, no two alike."""
    for number in range(12):
        compose(tmp_path / "many" / f"{number:02}.jpg", ("P001", "P003")[: 1 + number % 2], tile=number)
    with Library.create(tmp_path / "library") as library:
        library.index([tmp_path / "many"], workers=0)
        library.people.add_photos("Anna", [str(tmp_path / "many" / "03.jpg#1")])
    return tmp_path / "library"


@pytest.fixture
def small(tmp_path: Path) -> str:
    model = write_small_model(tmp_path / "small.onnx")
    return str(write_model_entry(model, name="small", dim=24, calibration={"w": 20.0, "b": -8.0}))


def waiting(tmp_path: Path, library: Path, model: str) -> subprocess.Popen[str]:
    script = tmp_path / "run.py"
    script.write_text(RUN)
    process = subprocess.Popen(
        [sys.executable, str(script), str(library), model],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    return process


def test_a_killed_run_is_gone_on_with(tmp_path: Path, many: Path, small: str) -> None:
    process = waiting(tmp_path, many, small)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Library.open(many) as library:
        assert library.check() == []
        assert library.dim == 128
        assert library.search(["Anna"], k=1)[0].matches
    report = Library.reembed(many, small, workers=0)
    assert 6 <= report.unchanged <= 7
    assert (report.unchanged + report.changed, report.ok) == (12, True)
    with Library.open(many) as library:
        assert library.check() == []
        assert (library.dim, library.people.descriptors("Anna").shape) == (24, (1, 24))


def test_ctrl_c_keeps_what_was_described(tmp_path: Path, many: Path, small: str) -> None:
    process = waiting(tmp_path, many, small)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the workers too
    out, _ = process.communicate(timeout=60)
    assert out == "7 True\n"
    assert Library.reembed(many, small, workers=0).unchanged == 7
