"""Watches a part of a video: finds its shots and the people in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from time import monotonic

from setnet.errors import VideoError
from setnet.faces import FaceSettings
from setnet.faces.pipeline import find_faces
from setnet.video.frames import FRAME_STEP, Frame, watch_frames
from setnet.video.people import Detection, ShotPerson, Tracker, build_tracks, shot_people
from setnet.video.shots import (
    CUT_DISTANCE,
    LONGEST,
    Cut,
    Signature,
    find_cuts,
    may_be_cut,
    signature,
    split_take,
)
from setnet.video.sprite import SpritePictures


@dataclass(frozen=True, eq=False, slots=True)
class Shot:
    """A part of a video without a cut, or where the same people are in a long take.

    Attributes
    ----------
    start, stop
        Seconds from the beginning of the video.
    best
        The time at which the people are best seen.
    people
        From left to right; bystanders too, whose `seen` is short.
    sprite
        A JPEG of a few small pictures of the shot beside each other; empty if there is none.
    """

    start: float
    stop: float
    best: float
    people: tuple[ShotPerson, ...]
    sprite: bytes = b""


@dataclass(frozen=True, eq=False, slots=True)
class Watched:
    """What was seen in a part of a video.

    Attributes
    ----------
    shots
        Those that ended in this part.
    until
        Where to go on: the beginning of the first shot that has not ended.
    is_end
        Whether the video ends there.
    width, height
        Of the upright pictures.
    """

    shots: tuple[Shot, ...]
    until: float
    is_end: bool
    width: int
    height: int


USUAL_STEP = 1.0  # seconds between frames that are searched for faces
_SOON = 0.5  # after a cut or when somebody came or went
_SELDOM = 2.0  # while the same people stay
_UNCHANGED = 0.012  # distance of pictures in which nothing has changed
_SIDE = 960  # pixels of the longest side that is searched


def video_settings(settings: FaceSettings) -> FaceSettings:
    """Return the settings for pictures of videos: there are many, so they are smaller and searched faster.

    A detector that was chosen by the user stays.
    """
    detector = "cascade" if settings.detector == FaceSettings().detector else settings.detector
    return replace(settings, detector=detector, longest_side=min(settings.longest_side, _SIDE))


class FaceSchedule:
    """The faces seen so far, and when to look for them next."""

    def __init__(self, settings: FaceSettings) -> None:
        self._settings = video_settings(settings)
        self.tracker = Tracker(self._settings)
        self._last: Signature | None = None
        self._wait = 0.0

    def take(self, frame: Frame, signature: Signature) -> None:
        """Look for faces if it is time to, or repeat the last finding where the picture is the same."""
        changed = 1.0 if self._last is None else signature.distance(self._last)
        if self._last is not None:
            if changed < CUT_DISTANCE and frame.time - self.tracker.time < self._wait - 0.05:
                return
            if changed < _UNCHANGED:  # the same people at the same place
                self.tracker.repeat(frame.time)
                return
        found = find_faces(frame.pixels, self._settings)
        if changed > CUT_DISTANCE or len(found) != self.tracker.count:
            self._wait = _SOON
        else:
            self._wait = min(_SELDOM, 2 * self._wait)
        self.tracker.add(frame.time, found, is_new=changed > CUT_DISTANCE)
        self._last = signature


_LONGEST_PART = 2 * LONGEST  # seconds watched at once: what is kept of frames stays small
_MIN = 4.0  # seconds watched at once, however slow it is


def watch(
    path: str,
    settings: FaceSettings,
    at: float = 0.0,
    *,
    budget: float = 20.0,
    clock: Callable[[], float] = monotonic,
) -> Watched:
    """Return the shots of a video from a time on, until its end or for so long as the budget lasts.

    Parameters
    ----------
    path
        The file.
    settings
        Detector, descriptor and which faces count.
    at
        Seconds from the beginning; the `until` of the part before.
    budget
        Seconds by `clock` that the call may take; it goes on until a few seconds of video are seen.

    Raises
    ------
    VideoError
        When there is no picture to see.
    """
    began, faces, sprites = clock(), FaceSchedule(settings), SpritePictures()
    signatures: list[Signature] = []
    last: Frame | None = None
    is_end = True

    def has_changed(a: Frame, b: Frame) -> bool:
        return may_be_cut(signature(a), signature(b))

    for frame in watch_frames(path, at, has_changed):
        seconds = frame.time - at
        if seconds > _LONGEST_PART or (seconds > _MIN and clock() - began > budget):
            is_end = False
            break
        last = frame
        signatures.append(signature(frame))
        faces.take(frame, signatures[-1])
        sprites.take(frame)
    if last is None:
        if at > 0:
            return Watched((), at, True, 0, 0)
        raise VideoError("holds no picture that can be decoded")
    found = find_cuts(signatures)
    # What has not ended is seen again from its beginning, unless it is all there is.
    is_cut_short = not is_end and bool(found)
    end = found[-1].end if is_cut_short else last.time + FRAME_STEP / 2
    until = found[-1].begin if is_cut_short else end
    shots = _shots(at, end, found[:-1] if is_cut_short else found, faces.tracker.detections())
    shots = [replace(shot, sprite=sprites.sprite(shot.start, shot.stop)) for shot in shots]
    rows, columns = last.bgr.shape[:2]
    return Watched(tuple(shots), until, is_end, columns, rows)


def _shots(
    begin: float, end: float, found: Sequence[Cut], frames: Sequence[tuple[float, Sequence[Detection]]]
) -> list[Shot]:
    shots: list[Shot] = []
    for cut in (*found, Cut(end, end)):
        # A frame at the beginning of a shot has its time; one at the end is of the shot that ends.
        inside = [(time, seen) for time, seen in frames if begin <= time <= cut.end]
        if cut.end > begin:
            tracks = build_tracks(seen for _, seen in inside)
            times = [begin, *split_take(begin, cut.end, tracks), cut.end]
            for a, b in pairwise(times):
                is_last = b == times[-1]
                part = [s for t, s in inside if a <= t and (t < b or is_last)]
                shots.append(_shot(a, max(b, cut.begin) if is_last else b, part))
        begin = cut.begin
    return shots


def _shot(start: float, stop: float, seen: Sequence[Sequence[Detection]]) -> Shot:
    people = shot_people(build_tracks(seen), len(seen), USUAL_STEP)
    weights: dict[float, float] = {}
    for person in people:
        size = person.face.quality.size
        weights[person.at] = weights.get(person.at, 0.0) + size * person.seen
    best = max(weights, key=lambda time: (weights[time], -time)) if weights else (start + stop) / 2
    return Shot(round(start, 3), round(stop, 3), round(best, 3), tuple(people))
