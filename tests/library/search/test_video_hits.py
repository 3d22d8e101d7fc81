"""Whole videos by who is in them: people who are seen for long count more than bystanders."""

from __future__ import annotations

import pytest

from setnet.faces import Box
from setnet.library import LibraryPhoto, PhotoHit
from setnet.library.answer import video_hits
from setnet.library.photos import PersonMatch, StoredFace


def shot(video: str, start: float, *seen: float) -> PhotoHit:
    """Return a shot with so many people of the query, each seen for some seconds."""
    faces = tuple(
        StoredFace(n, 0.0, 0.0, 9.0, 9.0, 0.9, b"", "{}", start, seconds) for n, seconds in enumerate(seen)
    )
    photo = LibraryPhoto("1", video.encode(), 1, b"", None, 9, 9, faces, start, start + 9.0)
    matches = tuple(
        PersonMatch(name, 0.6, n, Box(0, 0, 9, 9), 0.9, True)
        for n, name in enumerate(("anna", "ben")[: len(seen)])
    )
    return PhotoHit(photo, 1.0, matches)


def test_bystanders_come_after_those_who_are_seen_for_longer() -> None:
    hits = [shot("passing.mp4", 0.0, 1.0), shot("talking.mp4", 0.0, 8.0), shot("both.mp4", 0.0, 1.0, 1.0)]
    found = video_hits(hits, ["anna", "ben"])
    assert [video.best.photo.stored_path for video in found] == [b"both.mp4", b"talking.mp4", b"passing.mp4"]
    assert found[2].score == pytest.approx(0.45)


def test_seconds_of_all_shots_count_and_the_longest_is_shown() -> None:
    (video,) = video_hits(
        [shot("a.mp4", 0.0, 2.0), shot("a.mp4", 20.0, 5.0), shot("a.mp4", 40.0, 1.0)], ["anna"]
    )
    assert (video.best.photo.start, video.shots) == (20.0, 3)
    (anna,) = video.to_dict()["people"]
    assert (anna["from"], anna["seen"]) == (20.0, 8.0)
