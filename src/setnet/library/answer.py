"""The answer to a query: hits in the user's terms, copies and bursts as one, and whole videos."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from setnet.library.photos import PathText, PersonMatch, PhotoHit
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
class Answer:
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

    def __iter__(self) -> Iterator[PhotoHit]:
        return iter(self.hits)

    def __getitem__(self, place: int) -> PhotoHit:
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


_BRIEF = 1.0  # seconds: a bystander who is seen for so long counts half


class Appearance(NamedTuple):
    """Where a person of the query is best seen in a video, and for how many seconds in all of its shots."""

    match: PersonMatch
    shot: PhotoHit
    seen: float

    @property
    def weight(self) -> float:
        """The probability that it is the person, less for somebody who is hardly seen."""
        return self.match.probability * _presence(self.seen)


class VideoHit(NamedTuple):
    """A video with people of the query.

    Attributes
    ----------
    best
        The shot with most of them.
    appearances
        Each person who is anywhere in the video, in the order of the query.
    shots
        How many of its shots have one of them.
    """

    best: PhotoHit
    appearances: tuple[Appearance, ...]
    shots: int

    @property
    def score(self) -> float:
        """The sum of the people's probabilities, weighed by how long each is seen."""
        return sum(each.weight for each in self.appearances)

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, Any]:
        """Return the video as values that JSON can hold; `from` and `to` are those of the best shot."""
        shot = self.best.photo
        return {
            "photo": path_text(shot.stored_path),
            "kind": "video",
            "from": shot.start,
            "to": shot.stop,
            "score": round(self.score, 6),
            "together": len(self.best.matches),
            "shots": self.shots,
            "people": [
                {
                    "person": each.match.person,
                    "probability": round(each.match.probability, 6),
                    "sure": each.match.sure,
                    "id": each.shot.photo.id,
                    "from": each.shot.photo.start,
                    "to": each.shot.photo.stop,
                    "seen": round(each.seen, 3),
                }
                for each in self.appearances
            ],
        }


def video_hits(shots: Sequence[PhotoHit], people: Sequence[str], at_least: int = 1) -> list[VideoHit]:
    """Return the videos of shots that were found, those with most of the people first.

    Among videos with the same number of people anywhere, those where more of them are together in a shot come
    first, then those with more certain matches of people who are seen for longer: bystanders come last.
    """
    by_video: dict[bytes, list[PhotoHit]] = {}
    for hit in shots:
        by_video.setdefault(hit.photo.stored_path, []).append(hit)
    found = [_video_hit(hits, people) for hits in by_video.values()]
    found = [video for video in found if len(video.appearances) >= max(1, at_least)]
    return sorted(
        found,
        key=lambda video: (
            -len(video.appearances),
            -len(video.best.matches),
            -video.score,
            video.best.photo.stored_path,
        ),
    )


def _video_hit(hits: Sequence[PhotoHit], people: Sequence[str]) -> VideoHit:
    found: dict[str, Appearance] = {}
    for hit in hits:
        for match in hit.matches:
            before = found.get(match.person)
            seen = _seen(hit, match) + (before.seen if before is not None else 0.0)
            if before is None or _weight(hit, match) > _weight(before.shot, before.match):
                found[match.person] = Appearance(match, hit, seen)
            else:
                found[match.person] = before._replace(seen=seen)
    best = max(hits, key=_togetherness)
    appearances = tuple(found[person] for person in people if person in found)
    return VideoHit(best, appearances, sum(1 for hit in hits if hit.matches))


def _togetherness(hit: PhotoHit) -> tuple[int, float, float]:
    return len(hit.matches), sum(_weight(hit, match) for match in hit.matches), -(hit.photo.start or 0.0)


def _weight(hit: PhotoHit, match: PersonMatch) -> float:
    return match.probability * _presence(_seen(hit, match))


def _seen(hit: PhotoHit, match: PersonMatch) -> float:
    return 0.0 if match.face is None else hit.photo.faces[match.face].seen or 0.0


def _presence(seconds: float) -> float:
    return seconds / (seconds + _BRIEF)
