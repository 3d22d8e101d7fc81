"""Pre-tagging (paper 5.3): known people are recognised once, and an inverted index answers by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.errors import InvalidInputError, one_of
from setnet.index.catalog import Catalog
from setnet.index.query import as_people, merged
from setnet.index.snapshot import Snapshot
from setnet.sets.logistic import Logistic

__all__ = ["EXAMPLE_LIMIT", "Tagged", "gallery_rows", "ranked_by_tags", "tagged"]

EXAMPLE_LIMIT = 10
ROWS = 16384  # elements compared at once

Tagged = tuple[int, int, int, float]  # tag, item, element, similarity


def gallery_rows(gallery: Mapping[str, ArrayLike], dim: int) -> tuple[list[str], NDArray[np.float32]]:
    """Return the names and one descriptor for each, from up to 10 examples per known person."""
    if not gallery:
        raise InvalidInputError("the gallery is empty: give at least one name with its examples")
    rows = []
    for name, examples in gallery.items():
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"gallery name {name!r} must be a string that is not empty")
        group = np.atleast_2d(np.asarray(examples, dtype=np.float32))
        if len(group) > EXAMPLE_LIMIT:
            raise InvalidInputError(f"{len(group)} examples of {name!r}: at most {EXAMPLE_LIMIT} are used")
        rows.append(merged(as_people([group], dim, f"gallery {name!r}")[0]))
    return list(gallery), np.concatenate(rows)


def tagged(
    snapshot: Snapshot, people: NDArray[np.float32], threshold: float, logistic: Logistic
) -> Iterator[list[Tagged]]:
    """Yield, chunk by chunk, who is in which item: each element is at most the one it resembles most."""
    if not 0 < threshold < 1:
        raise InvalidInputError(f"threshold {threshold} must lie between 0 and 1: it is a probability")
    least = (np.log(threshold / (1 - threshold)) - logistic.b) / logistic.w
    for s, segment in enumerate(snapshot.segments):
        owner = np.repeat(np.arange(len(segment)), segment.counts)
        dead = snapshot.dead[s]
        for at in range(0, len(owner), ROWS):
            sims = segment.elements[at : at + ROWS].astype(np.float32) @ people.T
            who = sims.argmax(axis=1)
            best = sims[np.arange(len(who)), who]
            row = owner[at : at + ROWS]
            keep = best >= least if dead is None else (best >= least) & ~dead[row]
            element = np.arange(at, at + len(who)) - segment.offsets[row]
            yield list(
                zip(
                    who[keep].tolist(),
                    segment.seq[row[keep]].tolist(),
                    element[keep].tolist(),
                    best[keep].tolist(),
                    strict=True,
                )
            )


def ranked_by_tags(catalog: Catalog, names: Sequence[str]) -> list[tuple[int, list[tuple[int, int, float]]]]:
    """Return (item, [(person, element, similarity)]) of tagged items, most of the people first.

    Equal items go by the sum of similarities, then by order of insertion.
    """
    known = dict(catalog.db.execute("SELECT name, tag FROM tag_names").fetchall())
    found: dict[int, list[tuple[int, int, float]]] = {}
    for person, name in enumerate(names):
        if name not in known:
            raise one_of("tag", name, sorted(known)[:20] or ["(the index has no tags: call tag() first)"])
        sql = "SELECT seq, element, similarity FROM tags WHERE tag = ?"
        for seq, element, similarity in catalog.db.execute(sql, (known[name],)):
            found.setdefault(seq, []).append((person, element, similarity))
    return sorted(found.items(), key=lambda item: (-len(item[1]), -sum(m[2] for m in item[1]), item[0]))


def write_tags(
    catalog: Catalog, names: list[str], rows: NDArray[np.float32], found: Iterator[list[Tagged]]
) -> int:
    """Replace the inverted index; return how many (person, item) entries it has."""
    catalog.db.execute("DELETE FROM tags")
    catalog.db.execute("DELETE FROM tag_names")
    entries: list[tuple[Any, ...]] = [
        (i, name, row.tobytes()) for i, (name, row) in enumerate(zip(names, rows, strict=True))
    ]
    catalog.db.executemany("INSERT INTO tag_names VALUES (?, ?, ?)", entries)
    sql = (
        "INSERT INTO tags VALUES (?, ?, ?, ?) ON CONFLICT (tag, seq) DO UPDATE "
        "SET element = excluded.element, similarity = excluded.similarity WHERE similarity < excluded.similarity"
    )
    for part in found:
        catalog.db.executemany(sql, part)
    return catalog.count("tags")
