"""Two processes take turns to write while one of them keeps a reader: nothing is lost, nobody is stale.

POSIX drops all locks of a process on a file when *any* of its descriptors of that file is closed
(sqlite.org/howtocorrupt.html, 2.2): code that opens a database file by hand beside SQLite shows up here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex

TURNS = 1000 if os.environ.get("SETNET_SOAK") else 150
ROW = np.eye(4, dtype=np.float32)[:1]

OTHER = """
import json, sys
import numpy as np
from setnet import SetIndex

ROW = np.eye(4, dtype=np.float32)[:1]
for line in sys.stdin:
    item, compact = json.loads(line)
    with SetIndex.open(sys.argv[1]) as index:
        index.add([item], ROW, [1])
        if compact:
            index.compact()
        problems = index.check().problems
    print(json.dumps(problems), flush=True)
"""


@contextmanager
def other_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        yield process
        assert process.stdin
        process.stdin.close()
        assert process.wait(60) == 0


def ask(process: subprocess.Popen[str], *message: Any) -> Any:
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def deleted_files(path: Path) -> list[str]:
    """Return the files below a folder that this process holds open although they are deleted."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except FileNotFoundError:  # the one of iterdir itself
            continue
        if target.startswith(str(path)) and target.endswith(" (deleted)"):
            found.append(target)
    return [name for name in found if not name.endswith(".seg (deleted)")]  # merged, still mapped


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to see open files")
def test_two_processes_that_take_turns_lose_nothing_and_no_reader_is_stale(tmp_path: Path) -> None:
    path = tmp_path / "i"
    SetIndex.create(path, 4).close()
    with other_process(path) as other, SetIndex.open(path, read_only=True) as reader:
        for turn in range(0, TURNS, 2):
            assert ask(other, f"other{turn}", turn % 100 == 0) == []
            assert len(reader) == turn + 1
            with SetIndex.open(path) as index:
                index.add([f"own{turn}"], ROW, [1])
            assert f"own{turn}" in reader
            assert f"other{turn}" in reader
            assert deleted_files(path) == []
        assert reader.check().problems == []
        assert len(reader.search(ROW, k=2 * TURNS)) == TURNS
    with SetIndex.open(path) as index:
        assert len(index) == TURNS
        assert index.check().problems == []
