"""The answer to a query: hits in the user's terms, copies and bursts as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

from setnet.library.photos import PathText, PhotoHit
from setnet.library.query import QueryPerson
from setnet.library.stacks import Moment, find_stacks, split_stack


def collapse(hits: Sequence[PhotoHit]) -> list[PhotoHit]:
    """Return the hits without those that show what a better one shows; each hit says which these are.

    `copies` of a hit have the same content. Its `others` were taken within seconds of it or of each other, in
    the same folder, and have the same people of the query in them.
    """
    found = []
    for first, *rest in find_stacks([Moment.of(hit.photo, frozenset(hit.people)) for hit in hits]):
        copies, others = split_stack([hits[number].photo for number in (first, *rest)])
        found.append(hits[first]._replace(copies=copies, others=others))
    return found


@dataclass(frozen=True, slots=True)
class GroupTotal:
    """How many photos have exactly `matched` of the query's people in them; in `sure` ones all are sure."""

    matched: int
    photos: int
    sure: int


@dataclass(frozen=True, slots=True)
class PersonThresholds:
    """The similarities from which a person of the query is surely, and maybe, recognised."""

    person: str
    sure: float
    maybe: float


@dataclass(frozen=True, slots=True)
class Answer(Sequence[PhotoHit]):
    """Ranked photos of a query, a sequence of its hits, with totals, timings and warnings.

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

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, place: int) -> PhotoHit: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[PhotoHit, ...]: ...
    def __getitem__(self, place: int | slice) -> PhotoHit | tuple[PhotoHit, ...]:
        return self.hits[place]

    def collapse(self) -> Answer:
        """Return the answer with copies and bursts as one hit each; its totals still count photos."""
        return replace(self, hits=tuple(collapse(self.hits)))

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, Any]:
        """Return the answer as values that JSON can hold; `path_text` writes the paths of photos."""
        return {
            "hits": [hit.to_dict(path_text) for hit in self.hits],
            "people": [person.name for person in self.people],
            "without": [person.name for person in self.without],
            "searched": self.searched,
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
            "warnings": list(self.warnings),
            "totals": None if self.totals is None else [asdict(total) for total in self.totals],
            "faces_searched": self.faces,
            "thresholds": [asdict(each) for each in self.thresholds],
            "unsure": list(self.unsure),
        }
