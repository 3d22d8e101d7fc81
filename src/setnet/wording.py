"""Numbers in sentences for people."""

from __future__ import annotations


def pluralise(number: int, one: str, many: str | None = None) -> str:
    """Return a number with what it counts.

    >>> pluralise(1, "photo"), pluralise(1204, "photo"), pluralise(2, "person", "people")
    ('1 photo', '1,204 photos', '2 people')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
