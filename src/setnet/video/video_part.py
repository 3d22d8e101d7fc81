"""Watches a part of a video: its shots, and the people in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING

from setnet.errors import VideoError
from setnet.video.decode.looks import APART, looks
from setnet.video.face_looks import USUAL, FaceLooks
from setnet.video.look import Look
from setnet.video.people.shot_person import shot_people
from setnet.video.people.sighting import Sighting
from setnet.video.people.tracks import tracks_of
from setnet.video.shot import Shot, Watched
from setnet.video.shots.limits import Limit, limits, may_be_cut
from setnet.video.shots.signature import Signature, signature
from setnet.video.shots.takes import LONGEST, divisions
from setnet.video.sprite import SpritePictures

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_LONGEST_PART = 2 * LONGEST  # seconds watched at once: what is kept of looks stays small
_LEAST = 4.0  # seconds watched at once, however slow it is


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
    began, faces, sprites = clock(), FaceLooks(settings), SpritePictures()
    signatures: list[Signature] = []
    last: Look | None = None
    is_end = True

    def has_changed(a: Look, b: Look) -> bool:
        return may_be_cut(signature(a), signature(b))

    for look in looks(path, at, has_changed):
        seconds = look.time - at
        if seconds > _LONGEST_PART or (seconds > _LEAST and clock() - began > budget):
            is_end = False
            break
        last = look
        signatures.append(signature(look))
        faces.take(look, signatures[-1])
        sprites.take(look)
    if last is None:
        if at > 0:
            return Watched((), at, True, 0, 0, 0, 0)
        raise VideoError("holds no picture that can be decoded")
    found = limits(signatures)
    # What has not ended is seen again from its beginning, unless it is all there is.
    is_cut_short = not is_end and bool(found)
    end = found[-1].end if is_cut_short else last.time + APART / 2
    until = found[-1].begin if is_cut_short else end
    shots = _shots(at, end, found[:-1] if is_cut_short else found, faces.seen())
    shots = [replace(shot, sprite=sprites.sprite(shot.start, shot.stop)) for shot in shots]
    rows, columns = last.frame.shape[:2]
    return Watched(tuple(shots), until, is_end, columns, rows, len(signatures), faces.count)


def _shots(
    begin: float, end: float, found: Sequence[Limit], looks: Sequence[tuple[float, Sequence[Sighting]]]
) -> list[Shot]:
    shots: list[Shot] = []
    for limit in (*found, Limit(end, end)):
        # A look at the beginning of a shot has its time; one at the end is of the shot that ends.
        inside = [(time, seen) for time, seen in looks if begin <= time <= limit.end]
        if limit.end > begin:
            tracks = tracks_of(seen for _, seen in inside)
            times = [begin, *divisions(begin, limit.end, tracks), limit.end]
            for a, b in pairwise(times):
                is_last = b == times[-1]
                part = [s for t, s in inside if a <= t and (t < b or is_last)]
                shots.append(_shot(a, max(b, limit.begin) if is_last else b, part))
        begin = limit.begin
    return shots


def _shot(start: float, stop: float, seen: Sequence[Sequence[Sighting]]) -> Shot:
    people = shot_people(tracks_of(seen), len(seen), USUAL)
    weights: dict[float, float] = {}
    for person in people:
        size = person.face.quality.size
        weights[person.at] = weights.get(person.at, 0.0) + size * person.seen
    best = max(weights, key=lambda time: (weights[time], -time)) if weights else (start + stop) / 2
    return Shot(round(start, 3), round(stop, 3), round(best, 3), tuple(people))
