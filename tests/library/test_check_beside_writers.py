"""A check beside a writer, in this process and in another, never takes a change under way for damage."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from setnet.library import Library
from tests.support.invented_photos import store

CHECKS = 1000 if os.environ.get("SETNET_SOAK") else 60
ROOT = Path(__file__).parents[2]  # where the other process imports `tests`

OTHER = """
import sys
from tests.support.invented_photos import store
from setnet.library import Library
turn = 0
while True:
    with Library.open(sys.argv[1]) as library:
        for _ in range(5):
            turn += 1
            store(library, {f"{turn % 9}.jpg": [turn % 5, turn % 3 + 5], f"b{turn % 4}.jpg": [turn % 7]})
        library.forget([f"/invented/b{turn % 4}.jpg"])
"""


def test_no_false_alarm_beside_another_process(tmp_path: Path) -> None:
    Library.create(tmp_path / "library").close()
    command = [sys.executable, "-c", OTHER, str(tmp_path / "library")]
    with Library.open(tmp_path / "library") as library:
        other = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        try:
            for _ in range(CHECKS):
                assert library.check() == []
            assert other.poll() is None, other.stderr and other.stderr.read()
        finally:
            other.kill()
            other.communicate()


def test_no_false_alarm_beside_a_thread(tmp_path: Path) -> None:
    stop = threading.Event()
    errors: list[BaseException] = []
    with Library.create(tmp_path / "library") as library:

        def write() -> None:
            try:
                turn = 0
                while not stop.is_set():
                    turn += 1
                    store(library, {f"{turn % 9}.jpg": [turn % 5, 7], f"b{turn % 4}.jpg": [turn % 3]})
                    if turn % 5 == 0:
                        library.forget([f"/invented/b{turn % 4}.jpg"])
            except BaseException as error:
                errors.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(CHECKS):
                assert library.check() == []
        finally:
            stop.set()
            writer.join()
        assert errors == []
