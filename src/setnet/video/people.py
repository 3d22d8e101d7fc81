"""Faces followed from frame to frame, and one element per person and shot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import cos, radians

import numpy as np
from numpy.typing import NDArray

from setnet.faces import Face, FaceSettings, Quality
from setnet.faces.pipeline import FoundFace, describe_found

_FULL_SIZE = 112.0  # pixels: the descriptor sees no more of a larger face
_CRISP = 0.15  # sharpness from which a face is as good as any


@dataclass(frozen=True, slots=True)
class Detection:
    """A face that was seen at a time of a video, in seconds.

    Unless it `is_described`, its descriptor is that of a better picture of the face, just before or after.
    """

    time: float
    face: Face
    is_described: bool = True

    @property
    def weight(self) -> float:
        """How much the face tells of a person, 0 to 1."""
        return face_weight(self.face.quality)


def face_weight(quality: Quality) -> float:
    """Return how much a face tells of a person, 0 to 1: large, sharp and seen from the front tells most."""
    size = min(1.0, quality.size / _FULL_SIZE)
    sharp = min(1.0, quality.sharpness / _CRISP)
    front = max(0.1, cos(radians(min(abs(quality.yaw), 90.0))))
    return max(0.01, size * (0.2 + 0.8 * sharp) * front * max(quality.score, 0.1))


_FOLLOWED_OVERLAP = 0.4  # overlap with the face at the last frame, from which it is taken for the same
_ALONE = 0.1  # overlap with any other: people who cross are told apart by descriptors
_FOLLOWED_SECONDS = 2.2  # seconds: later, somebody else may be at the place
_PICTURES = 3  # followed at most; then the face is described again, whoever it is


@dataclass(eq=False)
class _Tracklet:
    """One face in some frames: their numbers, and the pictures, which repeat while nothing moves."""

    frames: list[tuple[int, FoundFace]] = field(default_factory=list)

    @property
    def last(self) -> FoundFace:
        return self.frames[-1][1]

    @property
    def is_full(self) -> bool:
        return len({id(face) for _, face in self.frames}) >= _PICTURES

    @property
    def best(self) -> FoundFace:
        return max((face for _, face in self.frames), key=lambda face: face_weight(face.quality))


class Tracker:
    """Faces frame by frame, described by their best pictures.

    Pictures are kept until a face is described: at most three of each that is in sight.
    """

    def __init__(self, settings: FaceSettings) -> None:
        self._settings = settings
        self._frames: list[tuple[float, list[Detection]]] = []
        self._going_on: list[_Tracklet] = []

    @property
    def time(self) -> float:
        """The time of the last frame."""
        return self._frames[-1][0]

    @property
    def count(self) -> int:
        """How many faces there were at the last frame; -1 before the first."""
        return len(self._going_on) if self._frames else -1

    def add(self, time: float, found: Sequence[FoundFace], *, is_new: bool) -> None:
        """Add the faces of a frame; nobody is followed into a shot that `is_new`."""
        going_on: list[_Tracklet] = []
        near = not is_new and bool(self._frames) and time - self.time <= _FOLLOWED_SECONDS
        for face in found:
            before = self._before(face, found) if near else None
            going_on.append(_Tracklet() if before is None else before)
        self._end([tracklet for tracklet in self._going_on if tracklet not in going_on])
        self._frames.append((time, []))
        for tracklet, face in zip(going_on, found, strict=True):
            tracklet.frames.append((len(self._frames) - 1, face))
        self._going_on = going_on

    def repeat(self, time: float) -> None:
        """Add a frame at which the picture is that of the last one."""
        self._frames.append((time, []))
        for tracklet in self._going_on:
            tracklet.frames.append((len(self._frames) - 1, tracklet.last))

    def detections(self) -> list[tuple[float, list[Detection]]]:
        """Return the faces of all frames so far, from left to right, with their times."""
        self._end(self._going_on)
        self._going_on = []
        for _, seen in self._frames:
            seen.sort(key=lambda detection: detection.face.box.x0 + detection.face.box.x1)
        return self._frames

    def _before(self, face: FoundFace, found: Sequence[FoundFace]) -> _Tracklet | None:
        """Return the tracklet that a face goes on with, if there is no doubt about it."""
        overlaps = [face.box.overlap(tracklet.last.box) for tracklet in self._going_on]
        if sum(overlap > _ALONE for overlap in overlaps) != 1 or max(overlaps) < _FOLLOWED_OVERLAP:
            return None
        tracklet = self._going_on[overlaps.index(max(overlaps))]
        rivals = sum(tracklet.last.box.overlap(other.box) > _ALONE for other in found)
        return tracklet if rivals == 1 and not tracklet.is_full else None

    def _end(self, tracklets: Sequence[_Tracklet]) -> None:
        faces = describe_found([tracklet.best for tracklet in tracklets], self._settings)
        for tracklet, best in zip(tracklets, faces, strict=True):
            chosen, is_known = tracklet.best, False
            for number, face in tracklet.frames:
                time, seen = self._frames[number]
                is_first = face is chosen and not is_known
                is_known = is_known or is_first
                quality = face.quality
                whole = Face(face.box, face.landmarks, quality.score, quality, best.descriptor)
                seen.append(Detection(time, whole, is_first))


# Similarities of the default descriptor: of one person's faces about 0.64, of different people's 0. The two
# below were chosen at 0.25 and 0.42 before SFace had a metric. They stand where as many pairs of different
# people in LFW's training half are taken for one, on average over the photos (0.156, 0.343) and their
# coarse (0.179, 0.359), small (0.168, 0.354) and shaken copies (0.185, 0.368): 1 in 25 and 1 in 6,000. Up
# to 1.5 points more genuine pairs pass.
_SAME_PLACE = 0.25  # overlap from which a face may be the one that was here at the last frame
_NOT_ANOTHER = 0.17  # similarity that such a face needs: turned and blurred ones have little
_SAME_PERSON = 0.36  # similarity of one that is elsewhere
_CONTINUED = 2.5  # seconds: later, place means nothing


@dataclass
class Track:
    """One face, followed through a shot: at most one detection for each frame."""

    detections: list[Detection] = field(default_factory=list)

    @property
    def times(self) -> set[float]:
        """When it was seen."""
        return {detection.time for detection in self.detections}

    @property
    def mean(self) -> NDArray[np.float32]:
        """The mean of its descriptors, weighted by quality, of length 1."""
        return weighted_mean(self.detections)


def weighted_mean(detections: Sequence[Detection]) -> NDArray[np.float32]:
    """Return the mean descriptor of faces, the better ones counting more, of length 1."""
    described = described_only(detections)
    weights = np.array([detection.weight for detection in described], np.float32)
    total = weights @ np.stack([detection.face.descriptor for detection in described])
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-9), np.float32)


def described_only(detections: Sequence[Detection]) -> Sequence[Detection]:
    """Return the detections that are described themselves; all, where the better pictures are elsewhere."""
    return [detection for detection in detections if detection.is_described] or detections


def build_tracks(detections: Iterable[Sequence[Detection]]) -> list[Track]:
    """Return the tracks of one shot, given its detections frame by frame."""
    tracks: list[Track] = []
    for seen in detections:
        pairs = sorted(
            (-similarity, i, j)
            for i, track in enumerate(tracks)
            for j, detection in enumerate(seen)
            if (similarity := _similarity(track, detection)) > 0
        )
        taken: set[int] = set()
        given: set[int] = set()
        for _, i, j in pairs:
            if i not in taken and j not in given:
                taken.add(i)
                given.add(j)
                tracks[i].detections.append(seen[j])
        tracks += [Track([detection]) for j, detection in enumerate(seen) if j not in given]
    return _merge_tracks(tracks)


def _similarity(track: Track, detection: Detection) -> float:
    """Return how surely a face goes on with a track; 0 when it does not."""
    last = track.detections[-1]
    similarity = float(track.mean @ detection.face.descriptor)
    place = 0.0
    if detection.time - last.time <= _CONTINUED:
        place = last.face.box.overlap(detection.face.box)
    if place >= _SAME_PLACE and similarity >= _NOT_ANOTHER:
        return similarity + place
    return similarity if similarity >= _SAME_PERSON else 0.0


def _merge_tracks(tracks: list[Track]) -> list[Track]:
    """Return tracks with those of one person together; two that were seen at once are two people."""
    tracks = list(tracks)
    while True:
        means = np.stack([track.mean for track in tracks]) if tracks else np.zeros((0, 1), np.float32)
        alike = np.triu(means @ means.T, 1)
        for place in np.argsort(-alike, axis=None).tolist():
            i, j = divmod(place, len(tracks))
            if alike[i, j] < _SAME_PERSON:
                return tracks
            if not tracks[i].times & tracks[j].times:
                both = sorted(tracks[i].detections + tracks[j].detections, key=lambda s: s.time)
                tracks = [track for n, track in enumerate(tracks) if n not in (i, j)] + [Track(both)]
                break
        else:
            return tracks


_OUTLIER = 0.6  # of the usual similarity to the mean: a face below it is another one, or hardly a face
_ENOUGH_FRAMES = 4  # of a shot, after which a poor face that was seen once is taken for a mistake
_POOR = 0.15


@dataclass(frozen=True, eq=False, slots=True)
class ShotPerson:
    """A person in a shot.

    Attributes
    ----------
    face
        The best picture of the person: where it is at the time `at`, and the descriptor of the whole track.
    at
        Seconds from the beginning of the video.
    seen
        Seconds for which the person is seen.
    track
        (frames, 5) float32: time, x0, y0, x1, y1 in each frame that shows the person.
    """

    face: Face
    at: float
    seen: float
    track: NDArray[np.float32]


def shot_people(tracks: Sequence[Track], frames: int, apart: float) -> list[ShotPerson]:
    """Return the people of a shot that was looked at so many times, from left to right.

    `apart` is the usual time between two frames, for which a person seen at one of them is taken to be there.
    """
    found = [_person(track, apart) for track in tracks if not _is_mistake(track, frames)]
    return sorted(found, key=lambda person: (person.face.box.x0 + person.face.box.x1, person.at))


def _is_mistake(track: Track, frames: int) -> bool:
    return (
        frames >= _ENOUGH_FRAMES
        and len(track.detections) == 1
        and (track.detections[0].weight < _POOR or track.detections[0].face.score < 0.8)
    )


def _person(track: Track, apart: float) -> ShotPerson:
    kept = _without_outliers(described_only(track.detections))
    best = max(kept, key=lambda detection: (detection.weight, -detection.time))
    face = best.face
    whole = Face(face.box, face.landmarks, face.score, face.quality, weighted_mean(kept))
    boxes = [(s.time, *s.face.box) for s in track.detections]
    times = [s.time for s in track.detections]
    gaps = [min(b - a, 2 * apart) for a, b in pairwise(times)]
    return ShotPerson(whole, best.time, round(sum(gaps) + apart, 3), np.array(boxes, np.float32))


def _without_outliers(detections: Sequence[Detection]) -> list[Detection]:
    """Return the faces that are like the others, where there are enough to tell."""
    if len(detections) < 3:
        return list(detections)
    mean = weighted_mean(detections)
    alike = np.array([float(mean @ detection.face.descriptor) for detection in detections])
    lowest = _OUTLIER * float(np.median(alike))
    return [detection for detection, value in zip(detections, alike, strict=True) if value >= lowest]
