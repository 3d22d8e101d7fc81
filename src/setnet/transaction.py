"""One way to run an SQLite transaction that an error or a Ctrl-C cannot leave half open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["transaction"]


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit what the block does, or roll it back on any exception, an interrupt included.

    >>> db = sqlite3.connect(":memory:", isolation_level=None)
    >>> with transaction(db):
    ...     _ = db.execute("CREATE TABLE t (x)")
    >>> db.in_transaction
    False
    """
    if db.in_transaction:  # an interrupt struck between the BEGIN of an earlier call and its block
        db.execute("ROLLBACK")
    try:
        db.execute(begin)
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a COMMIT may have succeeded before the interrupt
            db.execute("ROLLBACK")
        raise
