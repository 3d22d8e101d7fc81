"""Numbers and times for people."""

from __future__ import annotations

from datetime import UTC, datetime


def pluralise(number: int, one: str, many: str | None = None) -> str:
    """Return a number with what it counts.

    >>> pluralise(1, "photo"), pluralise(1204, "photo"), pluralise(2, "person", "people")
    ('1 photo', '1,204 photos', '2 people')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def utc_time(seconds: float) -> datetime:
    """Return the time of so many seconds since 1970.

    >>> utc_time(0).isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC)
