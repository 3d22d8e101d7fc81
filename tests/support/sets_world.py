"""A small world of sets for the tests: people, photos of them, and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
YEARS = 20


def unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@dataclass(frozen=True)
class SetsWorld:
    ids: list[str]
    elements: Floats
    counts: NDArray[np.int64]
    attributes: list[dict[str, Any]]
    people: Floats
    together: list[int]  # two people who are in one item with nobody else

    def part(
        self, first: int, last: int
    ) -> tuple[list[str], Floats, NDArray[np.int64], list[dict[str, Any]]]:
        """Return some items as `add` takes them."""
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        rows = self.elements[ends[first] : ends[last]]
        return self.ids[first:last], rows, self.counts[first:last], self.attributes[first:last]


def sets_world(items: int = 60, people: int = 20, dim: int = 128, seed: int = 0) -> SetsWorld:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, items)
    centres = unit(rng.standard_normal((people, dim)).astype(np.float32))
    who = rng.integers(0, people, counts.sum())
    noise = rng.standard_normal((len(who), dim)).astype(np.float32) * 0.5 / np.sqrt(dim)
    attributes = [{"year": 2000 + i % YEARS, "place": f"p{i % 3}"} for i in range(items)]
    first = next(at for at, n in zip(np.cumsum(counts) - counts, counts, strict=True) if n == 2)
    ids = [f"photo-{i:04d}" for i in range(items)]
    faces = unit(centres[who] + noise)
    return SetsWorld(ids, faces, counts, attributes, centres, who[first : first + 2].tolist())


def fill_table(uri: str, world: SetsWorld) -> None:
    """Store a world in PostgreSQL as a user may: in a table of one row per face."""
    import psycopg

    owners = np.repeat(np.arange(len(world.ids)), world.counts)
    with psycopg.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        schema = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
        place = (cursor.execute(schema).fetchone() or ("",))[0]
        cursor.execute(f"SELECT set_config('search_path', 'public, {place}', true)")
        cursor.execute(
            "CREATE TABLE faces "
            "(item text, face serial PRIMARY KEY, vector vector(128), year int, place text)"
        )
        with cursor.copy("COPY faces (item, vector, year, place) FROM STDIN") as copy:
            for i, row in zip(owners.tolist(), world.elements, strict=True):
                details = world.attributes[i]
                copy.write_row([world.ids[i], str(row.tolist()), details["year"], details["place"]])
