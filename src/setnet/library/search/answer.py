"""The answer to a query for photos: hits in the user's terms, totals, timings and warnings."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from setnet.library.photos import PathText, PhotoHit
from setnet.library.search.collapsing import collapsed
from setnet.library.search.query_person import QueryPerson


class GroupTotal(NamedTuple):
    """How many photos have exactly `matched` of the query's people in them; in `sure` ones all are sure."""

    matched: int
    photos: int
    sure: int

    def to_dict(self) -> dict[str, int]:
        """Return the numbers as values that JSON can hold."""
        return self._asdict()


class PersonThresholds(NamedTuple):
    """The similarities from which a person of the query is surely, and maybe, recognised."""

    person: str
    sure: float
    maybe: float

    def to_dict(self) -> dict[str, Any]:
        """Return the thresholds as values that JSON can hold."""
        return {"person": self.person, "sure": round(self.sure, 4), "maybe": round(self.maybe, 4)}


@dataclass(frozen=True, slots=True)
class Answer:
    """Ranked photos of a query, with totals, timings and warnings.

    `searched` counts the photos in the index and `faces` their faces, on whose number it depends which
    matches are sure: `thresholds` has the similarities of each person, `unsure` the names of those of whom
    no face of the library is a sure match. `seconds` has the time spent on the query's faces, the engine's
    search and reading the photos' records. `totals` has the photos of the whole answer by how many of the
    people are in them, most first: None when they were not asked for, or the mode compares no faces.
    """

    hits: tuple[PhotoHit, ...]
    people: tuple[QueryPerson, ...]
    without: tuple[QueryPerson, ...]
    searched: int
    seconds: dict[str, float]
    warnings: tuple[str, ...]
    totals: tuple[GroupTotal, ...] | None = None
    faces: int = 0
    thresholds: tuple[PersonThresholds, ...] = ()
    unsure: tuple[str, ...] = ()

    def collapsed(self) -> Answer:
        """Return the answer with copies and bursts as one hit each; its totals still count photos."""
        return replace(self, hits=tuple(collapsed(self.hits)))

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, Any]:
        """Return the answer as values that JSON can hold; `path_text` writes the paths of photos."""
        return {
            "hits": [hit.to_dict(path_text) for hit in self.hits],
            "people": [person.name for person in self.people],
            "without": [person.name for person in self.without],
            "searched": self.searched,
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
            "warnings": list(self.warnings),
            "totals": None if self.totals is None else [total.to_dict() for total in self.totals],
            "faces_searched": self.faces,
            "thresholds": [each.to_dict() for each in self.thresholds],
            "unsure": list(self.unsure),
        }
