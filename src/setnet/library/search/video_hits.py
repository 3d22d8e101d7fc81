"""Whole videos ranked by who is anywhere in them: a video is a set of shots, each a set of people."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from setnet.library.store.records import PathText, PersonMatch, PhotoHit


class Appearance(NamedTuple):
    """Where a person of the query is best seen in a video."""

    match: PersonMatch
    shot: PhotoHit


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
        """The sum of the people's probabilities, each in the shot where it is highest."""
        return sum(each.match.probability for each in self.appearances)

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
                }
                for each in self.appearances
            ],
        }


def video_hits(shots: Sequence[PhotoHit], people: Sequence[str], at_least: int = 1) -> list[VideoHit]:
    """Return the videos of shots that were found, those with most of the people first.

    Among videos with the same number of people anywhere, those where more of them are together in a shot come
    first, then those with more certain matches.
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
    seen: dict[str, Appearance] = {}
    for hit in hits:
        for match in hit.matches:
            known = seen.get(match.person)
            if known is None or match.probability > known.match.probability:
                seen[match.person] = Appearance(match, hit)
    best = max(hits, key=lambda hit: (len(hit.matches), hit.score, -(hit.photo.start or 0.0)))
    appearances = tuple(seen[person] for person in people if person in seen)
    return VideoHit(best, appearances, sum(1 for hit in hits if hit.matches))
