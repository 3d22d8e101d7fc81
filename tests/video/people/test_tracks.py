"""Tracks of faces that are directions in space: one person is one track, two people at once are two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setnet.faces import Box, Face, Quality
from setnet.video.people import Detection, build_tracks, shot_people
from setnet.video.shots import LONGEST, split_take
from tests.support.invented_photos import face_of


def detection(person: int, time: float, x: float = 0.0, yaw: float = 0.0) -> Detection:
    quality = Quality(80.0, 0.95, 0.2, yaw, 0.0, 0.0)
    view = int(time * 100) + 1
    return Detection(
        time, Face(Box(x, 0, x + 80, 80), np.zeros((5, 2), np.float32), 0.95, quality, face_of(person, view))
    )


def test_people_who_cross_stay_who_they_are() -> None:
    frames = [[detection(1, t, 40.0 * t), detection(2, t, 400 - 40.0 * t)] for t in range(11)]
    tracks = build_tracks(frames)
    assert sorted(len(track.detections) for track in tracks) == [11, 11]
    first, second = shot_people(tracks, 11, 1.0)
    alike = [float(p.face.descriptor @ face_of(n)) for p, n in ((first, 1), (second, 2))]
    others = [float(p.face.descriptor @ face_of(n)) for p, n in ((first, 2), (second, 1))]
    assert min(max(alike), max(others)) < 0.5 < max(*alike, *others)


def test_somebody_who_comes_back_is_one_person() -> None:
    frames: list[list[Detection]] = [[detection(1, t)] for t in range(4)]
    frames += [[detection(2, t + 10.0)] for t in range(4)]
    frames += [[detection(1, t + 20.0, 900.0)] for t in range(4)]
    people = shot_people(build_tracks(frames), len(frames), 1.0)
    assert sorted(len(person.track) for person in people) == [4, 8]
    assert max(person.seen for person in people) == 9  # not the time between


def test_a_face_that_is_not_like_the_others_does_not_count() -> None:
    frames = [[detection(1, t)] for t in range(6)]
    frames.append([Detection(6.0, replace(detection(1, 6.0).face, descriptor=_mixed()))])
    (person,) = shot_people(build_tracks(frames), len(frames), 1.0)
    (sound,) = shot_people(build_tracks(frames[:6]), 6, 1.0)
    assert np.allclose(person.face.descriptor, sound.face.descriptor)


def _mixed() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    vector = 0.35 * face_of(1) + face_of(77)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


@given(st.lists(st.lists(st.integers(0, 4), max_size=4, unique=True), max_size=12))
def test_every_detection_is_in_one_track_and_no_track_has_two_at_once(
    frames: Sequence[Sequence[int]],
) -> None:
    seen = [[detection(p, float(t), 100.0 * p) for p in people] for t, people in enumerate(frames)]
    tracks = build_tracks(seen)
    assert sum(len(track.detections) for track in tracks) == sum(map(len, seen))
    assert all(len(track.times) == len(track.detections) for track in tracks)


def test_a_long_take_is_divided_where_people_change() -> None:
    frames = [[detection(1, float(t))] for t in range(30)] + [[detection(2, float(t))] for t in range(30, 60)]
    (time,) = split_take(0.0, 60.0, build_tracks(frames))
    assert 28 <= time <= 31
    assert split_take(0.0, 12.0, build_tracks(frames[:12])) == []


def test_no_part_is_longer_than_the_longest() -> None:
    times = [0.0, *split_take(0.0, 2000.0, []), 2000.0]
    assert max(np.diff(times)) <= LONGEST
