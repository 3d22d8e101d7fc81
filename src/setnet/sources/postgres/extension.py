"""The extension pgvector, which brings vectors and the Hamming distance of bits to PostgreSQL."""

from __future__ import annotations

from psycopg import sql

from setnet.errors import NotAnIndexError, StorageError
from setnet.sources.postgres.connection import Connection

OLDEST = (0, 7)  # the first with distances of bits
INSTALLED = (
    "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
    "WHERE e.extname = 'vector'"
)
AVAILABLE = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"


def use_vectors(connection: Connection, create: bool = False) -> None:
    """Make the types and operators of pgvector visible on a connection, and nothing else but the system's.

    A function that somebody left in another schema is never called in place of a system's one.
    """
    found = connection.execute(INSTALLED).fetchone()
    if found is None:
        if connection.execute(AVAILABLE).fetchone() is None:
            raise StorageError(
                "the extension pgvector is missing: install its package on the database server"
            )
        if not create:
            raise NotAnIndexError("this database has no setnet tables: `setnet pg init` makes them")
        # IF NOT EXISTS alone fails when two processes create it at once
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('setnet extension', 7))")
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        found = connection.execute(INSTALLED).fetchone()
        assert found is not None
    schema, version = found
    if tuple(int(n) for n in str(version).split(".")[:2]) < OLDEST:
        raise StorageError(
            f"pgvector {version} is too old: 0.7 or newer is needed; update its package on the server, then "
            "`ALTER EXTENSION vector UPDATE`"
        )
    connection.execute(sql.SQL("SET search_path = pg_catalog, {}").format(sql.Identifier(schema)))
