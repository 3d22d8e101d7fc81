"""A shot of a video with the people in it."""

from __future__ import annotations

from dataclasses import dataclass

from setnet.video.people.shot_person import ShotPerson


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
    looks, face_looks
        How many pictures were looked at, and in how many of them faces were looked for.
    """

    shots: tuple[Shot, ...]
    until: float
    is_end: bool
    width: int
    height: int
    looks: int
    face_looks: int
