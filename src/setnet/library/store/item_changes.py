"""The feed of changes: which photos and people came, changed or went, in order, from any point on."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple

from setnet.errors import InvalidInputError

MOST_CHANGES = 1000
_CURSOR = re.compile(r"([0-9a-f]{1,16})\.([0-9]{1,18})(?:\.([0-9]{1,18}))?")


class ItemChange(NamedTuple):
    """The last change of a photo or person: `what` is `added`, `changed` or `removed`."""

    kind: str
    id: str
    what: str

    def to_dict(self) -> dict[str, str]:
        """Return the change as values that JSON can hold."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class ItemChanges:
    """Changes in the order in which they happened, and the cursor behind the last of them."""

    changes: tuple[ItemChange, ...]
    cursor: str
    more: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as values that JSON can hold."""
        return {
            "changes": [each.to_dict() for each in self.changes],
            "cursor": self.cursor,
            "more": self.more,
        }


class _Place(NamedTuple):
    """Where a reader is: the number read last, and where the reader stood when `more` was last false."""

    seen: int
    known: int


def changes_since(db: sqlite3.Connection, cursor: str | None, limit: int) -> ItemChanges:
    """Return what changed behind a cursor; without one, everything there is as added.

    An item that changed several times comes once, with its last change. What came and went since the
    cursor is `removed`.
    """
    if not 1 <= limit <= MOST_CHANGES:
        raise InvalidInputError(f"limit {limit}: a number from 1 to {MOST_CHANGES} is expected")
    (number,) = db.execute("SELECT value FROM sums WHERE name = 'item_changes'").fetchone()
    feed = f"{number:x}"
    place = _place(db, cursor, feed)
    rows = db.execute(
        "SELECT c.id, kind, item, coalesce(first, c.id), iif(kind = 'photo', "
        "EXISTS (SELECT 1 FROM photos WHERE id = item AND state = 'ready'), "
        "EXISTS (SELECT 1 FROM people WHERE uid = item)) "
        "FROM item_changes AS c WHERE c.id > ? ORDER BY c.id LIMIT ?",
        (place.seen, limit + 1),
    ).fetchall()
    more = len(rows) > limit
    found = tuple(
        ItemChange(kind, str(item), "removed" if not there else "added" if first > place.known else "changed")
        for _, kind, item, first, there in rows[:limit]
    )
    seen = rows[:limit][-1][0] if rows else place.seen
    return ItemChanges(found, f"{feed}.{seen}.{place.known}" if more else f"{feed}.{seen}", more)


def _place(db: sqlite3.Connection, cursor: str | None, feed: str) -> _Place:
    if cursor is None:
        return _Place(0, 0)
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInputError(f"{cursor!r:.80} is no cursor of a changes feed")
    seen = int(match[2])
    known = seen if match[3] is None else int(match[3])
    last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'item_changes'").fetchone()
    if match[1] != feed or seen > (last[0] if last else 0):
        raise InvalidInputError(
            "this cursor is of another state of the library, which was repaired or restored since: read the "
            "changes from the beginning, without a cursor"
        )
    return _Place(seen, known)
