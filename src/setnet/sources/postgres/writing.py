"""Writes items into PostgreSQL: a batch is stored whole or not at all, and may be repeated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from setnet.errors import InvalidInputError
from setnet.index import Batch
from setnet.sources.postgres.binary import Bits, copied_elements
from setnet.sources.postgres.connection import Connection
from setnet.sources.postgres.inverted_lists import Cells
from setnet.sources.postgres.table_names import Tables


def refuse_nul(batch: Batch) -> None:
    """Raise when an attribute holds a NUL character, which PostgreSQL stores in no text."""
    for name, text in zip(batch.ids, batch.attributes or (), strict=False):
        if "\\u0000" in text.replace("\\\\", ""):
            raise InvalidInputError(f"item {name!r}: an attribute holds a NUL character; PostgreSQL has none")


def write_batch(connection: Connection, tables: Tables, batch: Batch, bits: int, cells: Cells) -> None:
    """Add items, or replace those whose id is stored already, inside the caller's transaction.

    Items are locked in the order of their ids, so that several writers of the same items wait for one another
    and never deadlock.
    """
    codes = Bits.of_codes(batch.set_codes, bits)
    texts = batch.attributes or [""] * len(batch.ids)
    elements = np.asarray(batch.elements, np.float32)
    near = cells.of_items(elements, batch.counts)
    rows = [
        (name, count, text or "{}", code if count else None, cell)
        for name, count, text, code, cell in sorted(
            zip(batch.ids, batch.counts.tolist(), texts, codes, near, strict=True), key=lambda item: item[0]
        )
    ]
    upsert = tables.sql(
        "INSERT INTO {items} (id, elements, attributes, set_vector, cells) "
        "VALUES (%s, %s, %s::jsonb, %s, %s::smallint[]) "
        "ON CONFLICT (id) DO UPDATE SET elements = excluded.elements, attributes = excluded.attributes, "
        "set_vector = excluded.set_vector, cells = excluded.cells"
    )
    with connection.cursor() as cursor:
        cursor.executemany(upsert, rows)
        cursor.execute(tables.sql("DELETE FROM {elements} WHERE item = ANY(%s)"), [list(batch.ids)])
        with cursor.copy(tables.sql("COPY {elements} FROM STDIN (FORMAT binary)")) as copy:
            for piece in copied_elements(batch.ids, batch.counts, elements):
                copy.write(piece)


def delete_items(connection: Connection, tables: Tables, ids: Sequence[str], missing_ok: bool) -> int:
    """Delete items and their elements, inside the caller's transaction; return how many there were."""
    # locked in one order first, as `write_batch` does
    lock = tables.sql("SELECT id FROM {items} WHERE id = ANY(%s) ORDER BY id FOR UPDATE")
    found = {str(row[0]) for row in connection.execute(lock, [list(ids)])}
    missing = next((name for name in ids if name not in found), None)
    if missing is not None and not missing_ok:
        raise InvalidInputError(f"id {missing!r} is not stored: nothing was deleted")
    connection.execute(tables.sql("DELETE FROM {items} WHERE id = ANY(%s)"), [sorted(found)])
    return len(found)
