from __future__ import annotations

import socket
from pathlib import Path

import psycopg
import pytest

from setnet.connect import PostgresSets
from setnet.connect.database import display_uri
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError
from tests.support.postgres_server import CAREFUL, PostgresServer
from tests.support.sets_world import fill_table, sets_world

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgresql://ann:s3cret@db:5433/photos", "postgresql://ann@db:5433/photos"),
        ("postgresql://db/photos?password=s3cret&user=ann", "postgresql://ann@db/photos"),
        ("host=db password='s3cret' dbname=x", "postgresql://db/x"),
        ("postgresql://ann:s3cret%40x@/p?host=/run/pg", "postgresql://ann@%2Frun%2Fpg/p"),
    ],
)
def test_a_displayed_uri_has_no_password(uri: str, shown: str) -> None:
    assert display_uri(uri) == shown


def test_an_unreadable_uri_is_not_repeated() -> None:
    with pytest.raises(InvalidInputError) as error:
        PostgresSets("postgresql://ann:s3cret@db:port:x/%zz")
    assert "s3cret" not in str(error.value)
    assert "expected postgresql://USER@HOST/DATABASE" in str(error.value)


def refused(uri: str) -> str:
    with pytest.raises(StorageError) as error:
        PostgresSets(uri)
    text = str(error.value)
    assert "s3cret" not in text
    assert "\n" not in text
    return text


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = refused(f"postgresql://ann:s3cret@127.0.0.1:{port}/photos")
    assert text.startswith(f"postgresql://ann@127.0.0.1:{port}/photos: ")
    assert text.endswith("check the address, and that the server runs")
    assert "check the address" in refused(f"postgresql://ann@/photos?host={tmp_path}")


def test_a_wrong_password_user_or_database(server: PostgresServer) -> None:
    server.execute(f"DROP ROLE IF EXISTS {CAREFUL}")
    server.execute(f"CREATE ROLE {CAREFUL} LOGIN PASSWORD 'right'")
    for password in ("s3cret", ""):
        text = refused(server.uri(user=CAREFUL, password=password))
        assert "give the right one in the connection string, PGPASSWORD or ~/.pgpass" in text
    assert "check the names of user and database" in refused(server.uri("nowhere"))


def test_a_missing_extension_and_missing_rights(server: PostgresServer, uri: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(uri)["dbname"]
    with pytest.raises(
        NotAnIndexError, match=r"no extension pgvector: install its package .* `CREATE EXTENSION"
    ):
        PostgresSets(uri)
    fill_table(uri, sets_world(5))
    server.execute("DROP ROLE IF EXISTS guest")
    server.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(StorageError, match=r"permission denied .*: ask the database's owner to grant it"):
        PostgresSets(server.uri(str(name), "guest")).search(sets_world(5).people[:1])


def test_the_extension_may_be_in_any_schema_and_nobody_can_shadow_what_is_called(
    server: PostgresServer, uri: str
) -> None:
    name = str(psycopg.conninfo.conninfo_to_dict(uri)["dbname"])
    server.execute('CREATE SCHEMA "Odd place"', name)
    server.execute('CREATE EXTENSION vector SCHEMA "Odd place"', name)
    server.execute(
        "CREATE FUNCTION public.exp(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 1 / 0.0::float8'", name
    )
    world = sets_world(20)
    fill_table(uri, world)
    sets = PostgresSets(uri)
    assert len(sets.search(world.people[:1], k=20)) == 20
