"""Readers beside one writer: consistent snapshots, no waiting, no second writer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import Hit
from setnet.errors import InvalidInputError, LockedError


def test_a_second_writer_gets_an_error_at_once(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", 4) as index:
        with pytest.raises(LockedError, match="read_only=True"):
            SetIndex.open(tmp_path / "i")
        code = f"from setnet import SetIndex\nSetIndex.open({str(tmp_path / 'i')!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert "LockedError" in other.stderr
        index.add(["a"], np.eye(4)[:1], [1])
        with SetIndex.open(tmp_path / "i", read_only=True) as reader:
            assert reader.search(np.eye(4)[:1])[0].id == "a"
            with pytest.raises(InvalidInputError, match="read-only"):
                reader.add(["b"], np.eye(4)[:1], [1])
    SetIndex.open(tmp_path / "i").close()


def test_readers_see_commits_and_run_through_compactions(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    """Every batch moves all items to a new generation; a reader must never see two generations mixed."""
    n = 60
    row = np.eye(4, dtype=np.float32)[:1]
    writer = SetIndex.create(tmp_path / "i", 4)

    def write(generation: int) -> None:
        attributes = [{"generation": generation}] * n
        writer.add([str(i) for i in range(n)], np.repeat(row, n, axis=0), [1] * n, attributes=attributes)

    write(0)
    stop, wrong, seen = threading.Event(), [], set()

    def read(index: SetIndex) -> None:
        while not stop.is_set():
            for generation in range(30):
                hits = index.search(row, k=1000, where={"generation": generation})
                if len(hits) not in (0, n):
                    wrong.append(len(hits))
                if hits:
                    seen.add(generation)
            if len(index.search(row, k=1000)) != n:
                wrong.append(-1)

    readers = [SetIndex.open(tmp_path / "i", read_only=True) for _ in range(2)]
    threads = [threading.Thread(target=read, args=(index,)) for index in (*readers, readers[0], writer)]
    for thread in threads:
        thread.start()
    for generation in range(1, 30):
        write(generation)
        if generation % 5 == 0:
            writer.compact()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(seen) > 1
    assert writer.check().ok
    for index in (*readers, writer):
        index.close()


READER = """
import sys, numpy as np
from setnet import SetIndex
index = SetIndex.open(sys.argv[1], read_only=True)
print("ready", flush=True)
query = np.eye(8, dtype=np.float32)[:2]
for line in sys.stdin:
    hits = index.search(query, k=10)
    print(len(index), hits[0].id, flush=True)
"""


def test_another_process_reads_along(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", 8) as index:
        index.add(["first"], np.eye(8)[:2], [2])
        reader = subprocess.Popen(
            [sys.executable, "-c", READER, str(tmp_path / "i")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert reader.stdin
        assert reader.stdout
        assert reader.stdout.readline() == "ready\n"

        def state_seen(stdin: IO[str] = reader.stdin, stdout: IO[str] = reader.stdout) -> str:
            stdin.write("\n")
            stdin.flush()
            return stdout.readline().strip()

        assert state_seen() == "1 first"
        index.add(["second"], np.eye(8)[:1], [1])
        assert state_seen() == "2 first"
        index.delete(["first"])
        index.compact()
        assert state_seen() == "1 second"
        reader.stdin.close()
        assert reader.wait(timeout=30) == 0


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = SetIndex.create(tmp_path / "i", 4)
    index.close()
    index.close()
    for call in (
        lambda: index.search(np.eye(4)[:1]),
        lambda: index.add(["a"], np.eye(4)[:1], [1]),
        index.stats,
    ):
        with pytest.raises(InvalidInputError, match="is closed"):
            call()


def test_kernels_release_the_gil(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    """Threads searching at once give the answers of threads searching one by one."""
    world = make_world(3, 600)
    rng = np.random.default_rng(0)
    queries = [rng.normal(size=(2, 16)).astype(np.float32) for _ in range(24)]
    with make_index(world, tmp_path / "i") as index:
        expected = [index.search(q, k=10) for q in queries]
        found: list[Sequence[Hit] | None] = [None] * len(queries)

        def work(part: int) -> None:
            for i in range(part, len(queries), 4):
                found[i] = index.search(queries[i], k=10)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == expected


FORKED = """
import os, sys, numpy as np
from setnet import SetIndex
from setnet.engine import scan
scan.TASK = 1024  # several pieces of work
query = np.eye(2, 8, dtype=np.float32)
with SetIndex.open(sys.argv[1], read_only=True) as index:
    before = index.search(query, k=5, threads=2)
    child = os.fork()
    if not child:
        os._exit(index.search(query, k=5, threads=2) != before)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_searches_with_threads_of_its_own(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(20_000, 8))
    with SetIndex.create(tmp_path / "i", 8) as index:
        index.add([str(i) for i in range(len(rows))], rows, [1] * len(rows))
    done = subprocess.run([sys.executable, "-c", FORKED, str(tmp_path / "i")], timeout=60)
    assert done.returncode == 0
