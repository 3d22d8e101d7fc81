from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from setnet.library import Library

# A user's script, without the guard that multiprocessing needs; small batches, so that a kill finds the
# run between two of them. With a fourth word it says so and waits there, until a signal comes.
RUN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from setnet.library import Library
from setnet.library import index_run
index_run.BATCH_PHOTOS, index_run.BATCH_SECONDS = 3, 1e9

def wait(now):
    if now.done == 7 and len(sys.argv) > 4:
        print("waits", flush=True)
        while True:
            time.sleep(0.01)  # pause() would miss a signal that came just before it

with Library.open_or_create(sys.argv[1]) as library:
    report = library.index([sys.argv[2]], workers=int(sys.argv[3]), progress=wait)
    print(report.added, report.interrupted, flush=True)
"""


def started(tmp_path: Path, many: Path, workers: int, *waits: str) -> subprocess.Popen[str]:
    script = tmp_path / "run.py"
    script.write_text(RUN)
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "library"), str(many), str(workers), *waits],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def waiting(tmp_path: Path, many: Path) -> subprocess.Popen[str]:
    """Return a run that has found seven photos, and stored six or more of them, and goes no further."""
    process = started(tmp_path, many, 1, "waits")
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    return process


def test_a_killed_run_loses_nothing_it_stored_and_the_next_completes_it(tmp_path: Path, many: Path) -> None:
    process = waiting(tmp_path, many)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Library.open(tmp_path / "library") as library:
        before = library.photos.counts().photos
        assert 6 <= before <= 7
        assert library.search([library.photos.descriptors("1")], k=1)[0].photo.id == "1"
        report = library.index(workers=0)
        assert report.unchanged >= before
        assert (report.added + report.changed + report.unchanged, report.failed) == (24, ())
        assert library.photos.counts().photos == 24
        assert library.check() == []
    while str(tmp_path) in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout:
        time.sleep(0.05)  # no worker outlives the run it belonged to


@pytest.mark.soak
@pytest.mark.timeout(3600)  # five minutes alone, several times that on a busy machine
def test_a_run_killed_at_many_moments_ends_as_one_that_was_not(tmp_path: Path, many: Path) -> None:
    chance = random.Random(1)
    kills = 0
    while kills < 60:
        process = started(tmp_path, many, workers=kills % 3)
        try:
            process.wait(timeout=chance.uniform(0.3, 4.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        if not (tmp_path / "library" / "library.db").is_file():
            continue
        with Library.open_or_create(tmp_path / "library") as library:
            assert library.check() == []
            if library.photos.counts().photos == 24:  # begin again, with other photos changed
                for photo in sorted(many.iterdir())[kills % 5 :: 5]:
                    photo.write_bytes(photo.read_bytes() + b"x")
                for photo in list(many.iterdir())[kills % 7 :: 7]:
                    photo.rename(photo.with_name(f"{kills}-{photo.name}"))
    with Library.open(tmp_path / "library") as library:
        library.index(workers=0, prune=True)
        assert library.photos.counts().photos == 24
        assert library.photos.counts().unfinished == 0
        assert library.check() == []


def test_ctrl_c_keeps_what_was_found(tmp_path: Path, many: Path) -> None:
    process = waiting(tmp_path, many)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the workers too
    out, _ = process.communicate(timeout=60)
    assert out == "7 True\n"
    with Library.open(tmp_path / "library") as library:
        assert library.photos.counts().photos == 7
        assert library.photos.counts().unfinished == 0
        assert library.check() == []


def test_searches_go_on_while_a_run_writes(
    tmp_path: Path, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setnet.library.index_run.BATCH_PHOTOS", 2)
    with Library.create(tmp_path / "library") as library:
        first = sorted(many.iterdir())[0]
        library.index([first], workers=0)
        wanted = library.photos.descriptors("1")
        errors: list[BaseException] = []

        def index() -> None:
            try:
                library.index([many], workers=1)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=index)
        thread.start()
        sizes = []
        while thread.is_alive():
            hits = library.search([wanted], k=100)
            assert all((match.face or 0) < len(hit.photo.faces) for hit in hits for match in hit.matches)
            assert hits[0].photo.id == "1"
            sizes.append(len(hits))
            thread.join(0.02)  # the run needs the processor too
        assert errors == []
        assert sizes == sorted(sizes)
        assert len(library.search([wanted], k=100)) == 24
        assert library.check() == []
