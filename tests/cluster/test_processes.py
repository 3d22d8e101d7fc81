"""A cluster of real processes: its answers, its locks and keys, and what kills and freezes cost."""

from __future__ import annotations

import logging
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from running_cluster import RunningCluster, eventually, freeze, thaw
from setnet.cluster import ClusterIndex, cluster_status, open_cluster, require_running, run_head, run_worker
from setnet.errors import ClusterError, PhotoError, SetNetError
from setnet.index import Hit, SetIndex
from setnet.workers import Message, Service

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are frozen and read by /proc"),
    pytest.mark.xdist_group("cluster"),
]

DIM = 16
ITEMS = 300
SOAK_SECONDS = 60 * float(os.environ.get("SETNET_CLUSTER_MINUTES", "10"))


def rows(seed: int, count: int, first: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return unit vectors that use half of the dimensions, from ``first`` on."""
    found = np.zeros((count, DIM), np.float32)
    found[:, first : first + DIM // 2] = np.random.default_rng(seed).normal(size=(count, DIM // 2))
    unit: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = found / np.linalg.norm(
        found, axis=1, keepdims=True
    )
    return unit


QUERIES = rows(2, 10, 0)


class Trial:
    """A running cluster, and the answers that it must give whatever is added later."""

    def __init__(self, root: Path, workers: int = 2) -> None:
        ids, elements = [f"base {i}" for i in range(ITEMS)], rows(1, ITEMS, 0)
        with (
            SetIndex.create(root / "one", dim=DIM) as one,
            ClusterIndex.create(root / "c", shards=2, dim=DIM) as cluster,
        ):
            for index in (one, cluster):
                index.add(ids, elements, [1] * ITEMS)
            cluster.publish()
            self.expected = [self.top(one, i) for i in range(len(QUERIES) - 1)]
        self.running = RunningCluster(root / "c")
        self.running.start(workers)
        self.stored: list[str] = []

    @staticmethod
    def top(index: SetIndex | ClusterIndex, i: int) -> list[Hit]:
        return list(index.search(QUERIES[i : i + 2], k=10))

    def search(self, index: ClusterIndex, i: int) -> None:
        """Search, and compare; what is added lies in other directions and must not matter."""
        assert self.top(index, i) == self.expected[i]

    def add(self, index: ClusterIndex, count: int = 4) -> None:
        """Add items, and remember those that were acknowledged."""
        names = [f"added {len(self.stored) + i}" for i in range(count)]
        index.add(names, rows(len(self.stored), count, DIM // 2), [1] * count)
        self.stored += names

    def nothing_is_lost(self, index: ClusterIndex) -> None:
        assert index.publish() >= ITEMS + len(self.stored)  # and what was stored without an answer
        assert {item.id for item in index.items()} >= set(self.stored)
        assert index.check().problems == []


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    made = Trial(tmp_path)
    yield made
    made.running.stop()


def test_kills_and_freezes_cost_no_answer_and_no_item(trial: Trial) -> None:
    running = trial.running
    assert set(running.listening()) == {"0100007F"}  # 127.0.0.1 alone
    index = running.client()
    for i in range(3):
        trial.search(index, i)
    trial.add(index)
    freeze(running.workers[0])
    for i in range(3):
        trial.search(index, i)
    index._dispatcher.deadline = 0.3  # a writer that stands still is given up after some times that
    trial.add(index)
    index._dispatcher.deadline = 20.0
    thaw(running.workers[0])
    running.workers[0].kill()
    trial.search(index, 3)
    trial.add(index)
    assert running.head is not None
    running.head.kill()
    running.head.wait()
    with pytest.raises(ClusterError, match="setnet cluster start"):
        open_cluster(running.root)
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.ERROR)  # no traceback of its own
    running.start_head()
    running.wait_for(1)
    with running.client() as again:
        trial.search(again, 4)
        trial.add(again)
        trial.nothing_is_lost(again)
    index.close()


def test_a_process_with_another_key_or_version_is_refused(tmp_path: Path) -> None:
    from setnet.cluster.engine import secrets

    ClusterIndex.create(tmp_path / "c", shards=1, dim=4).close()
    with pytest.raises(ClusterError, match="not running"):
        require_running(tmp_path / "c")
    running = RunningCluster(tmp_path / "c")
    try:
        running.start_head()
        key = running.root / "key.pem"
        assert key.stat().st_mode & 0o777 == 0o600
        assert cluster_status(running.root).workers == []
        with pytest.raises(ClusterError, match="runs already"):
            run_head(running.root, "127.0.0.1", 0, lambda address: None)
        right = key.read_bytes()
        key.unlink()
        secrets.make_key(running.root)
        with pytest.raises(ClusterError, match="refuses this cluster's key"):
            open_cluster(running.root)
        key.write_bytes(right)
        key.chmod(0o644)
        with pytest.raises(ClusterError, match="chmod 600"):
            open_cluster(running.root)
        key.chmod(0o600)
        with pytest.raises(ClusterError, match=r"no address 203\.0\.113\.7: give one of its own with --host"):
            run_worker(running.root, "203.0.113.7", 1, lambda text: None)
        head = running.root / "head.json"
        text = head.read_text()
        head.write_text(text.replace('"version": "', '"version": "0.0.'))
        with pytest.raises(ClusterError, match="same version on all machines"):
            open_cluster(running.root)
        head.write_text(text.replace('"cluster": "', '"cluster": "x'))
        with pytest.raises(ClusterError, match="serves another cluster"):
            open_cluster(running.root)
    finally:
        running.stop()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "203.0.113.7"]
)  # its port is taken, no address of this machine
def test_a_head_that_cannot_listen_says_so(tmp_path: Path, host: str) -> None:
    ClusterIndex.create(tmp_path / "c", shards=1, dim=4).close()
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ClusterError, match=r"cannot listen on .* choose another with --host or --port"),
    ):
        run_head(tmp_path / "c", host, taken.getsockname()[1], lambda address: None)
    assert not (tmp_path / "c" / "head.json").exists()


def test_a_batch_whose_worker_is_killed_is_run_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies in the middle of a batch; afterwards each task has one reply, a failed one too."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]))
    ClusterIndex.create(tmp_path / "c", shards=1, dim=4).close()
    running = RunningCluster(tmp_path / "c")
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "hold").touch()
    try:
        running.start(2)
        with running.client() as index, ThreadPoolExecutor(1) as threads:
            options = {"folder": str(notes), "held": 2, "bad": 1}
            pool = index.task_pool(Service("held_service", options))
            assert pool is not None
            assert (pool.workers, pool.threads, pool.batch_size(40), pool.batch_size(3)) == (2, 2, 5, 1)
            batch = threads.submit(pool.replies, [Message("note", {"number": i}) for i in range(4)])
            eventually(lambda: any(notes.glob("begun 2 *")), "the third task")
            (begun,) = notes.glob("begun 2 *")
            victim = next(w for w in running.workers if w.pid == int(begun.name.rpartition(" ")[2]))
            victim.kill()
            victim.wait()
            (notes / "hold").unlink()
            replies = batch.result()
            assert [reply.fields.get("number") for reply in replies] == [0, None, 2, 3]
            with pytest.raises(PhotoError, match="no photo"):
                pool.taken(replies[1], lambda reply: reply)
            assert len(list(notes.glob("begun 2 *"))) == 2
            (notes / "hold").touch()
            lost = threads.submit(pool.replies, [Message("note", {"number": 2})])
            eventually(lambda: (notes / "hold").exists(), "a task under way")
            assert running.head is not None
            running.head.kill()
            with pytest.raises(ClusterError, match="the head of the cluster went away"):
                lost.result()
    finally:
        running.stop()


@pytest.mark.soak
def test_a_killed_worker_costs_its_photos_time_alone(tmp_path: Path, compose: Callable[..., None]) -> None:
    from setnet.library import IndexProgress, Library

    for i in range(16):  # in batches of two
        compose(tmp_path / "photos" / f"{i}.jpg", ("P001", "P003"), tile=1 + i % 8)
    place = tmp_path / "library"
    Library.create(place, shards=2).close()
    running = RunningCluster(place / "index")

    def kill_one(progress: IndexProgress) -> None:
        if progress.stage == "finding faces" and progress.done == 2 and len(running.workers) == 2:
            assert progress.machines == 2
            running.workers[0].kill()
            running.workers.pop(0).wait()

    try:
        running.start(2)
        with Library.open(place) as library:
            report = library.index([tmp_path / "photos"], progress=kill_one)
            assert len(running.workers) == 1
            assert (report.added + report.copied, report.failed) == (16, ())
            assert library.check() == []
            assert len(library.set_index) == 16
    finally:
        running.stop()


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 600)
def test_a_cluster_under_load_survives_kills_and_freezes(tmp_path: Path) -> None:
    """Readers, writers and the head are killed and frozen at random; searches and changes go on."""
    trial = Trial(tmp_path, workers=3)
    running, end = trial.running, time.monotonic() + SOAK_SECONDS
    wrong: list[BaseException] = []
    counts = {"searches": 0, "errors": 0, "adds": 0, "faults": 0}

    def load(work: str) -> None:
        dice = random.Random(work)
        while time.monotonic() < end and not wrong:
            try:
                with running.client(deadline=3.0) as index:
                    for _ in range(50):
                        if work == "adds":
                            trial.add(index)
                            if dice.random() < 0.2:
                                index.publish()
                        else:
                            trial.search(index, dice.randrange(len(trial.expected)))
                        counts[work] += 1
                        if time.monotonic() > end:
                            break
            except SetNetError:
                counts["errors"] += 1
                time.sleep(0.2)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=load, args=(work,)) for work in ("searches", "searches", "adds")]
    for thread in threads:
        thread.start()
    dice = random.Random(7)
    try:
        while time.monotonic() < end and not wrong:
            time.sleep(dice.uniform(1.0, 6.0))
            counts["faults"] += 1
            running.workers = [worker for worker in running.workers if worker.poll() is None]
            for _ in range(3 - len(running.workers)):  # one that began while the head was away has given up
                running.start_worker()
            victim = dice.choice(running.workers)
            fault = dice.choice(["freeze", "freeze", "kill", "kill", "head", "frozen head"])
            if fault == "freeze":
                freeze(victim)
                time.sleep(dice.uniform(0.5, 5.0))
                thaw(victim)
            elif fault == "kill":
                victim.kill()
                victim.wait()
                running.start_worker()
            elif running.head is not None and fault == "head":
                running.head.kill()
                running.head.wait()
                running.start_head()
            elif running.head is not None:
                freeze(running.head)
                time.sleep(dice.uniform(0.5, 3.0))
                thaw(running.head)
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        running.wait_for(len(running.processes) - 1)
        with running.client(deadline=60.0) as index:
            for i in range(len(trial.expected)):
                trial.search(index, i)
            trial.nothing_is_lost(index)
        print(counts, f"{len(trial.stored)} items acknowledged")
        assert counts["searches"] > counts["faults"]
    finally:
        running.stop()
