"""Footage composed of LFW pictures, with the ground truth of its shots and of who is where in them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.footage.mp4_edits import set_times, set_turned

WIDTH, HEIGHT, RATE = 640, 360, 12.5
MOTIONS = ("still", "moving", "zooming", "blurred", "turned", "dark", "crossing")
_CUTS = ("cut", "cut", "fade", "dissolve")
_SHOTS = 8  # in a clip
_CROSSED = 0.5  # of the width

Picture = NDArray[np.uint8]


@dataclass(frozen=True)
class Actor:
    """A person in a shot: from which picture, where, and how large."""

    person: str
    picture: str
    x: float
    y: float
    side: float
    drift: float


@dataclass(frozen=True)
class FootageShot:
    """A shot: its limits in seconds, what moves, who is in it, and how it ends."""

    start: float
    stop: float
    motion: str
    actors: tuple[Actor, ...]
    end: str
    mixed: float

    def place(self, actor: Actor, time: float) -> tuple[float, float, float]:
        """Return the middle of an actor's face and its picture's side at a time."""
        share = (time - self.start) / (self.stop - self.start)
        x, side = actor.x + actor.drift * share, actor.side
        if self.motion == "zooming":
            side *= 0.6 + 0.6 * share
        return x, actor.y + 8 * math.sin(3 * time), side


@dataclass(frozen=True)
class Clip:
    """A video file with its shots.

    One that `is_turned` was filmed upright, and only a flag says so; the frame rate of some `is_varying`.
    """

    name: str
    shots: tuple[FootageShot, ...]
    is_turned: bool = False
    is_varying: bool = False


def plan_footage(pictures: Mapping[str, Sequence[str]], shots: int, seed: int) -> list[Clip]:
    """Return clips with so many shots of one to four of the people; of five, one is turned, one varies."""
    rng = np.random.default_rng((seed, 31))
    names = sorted(pictures)
    if len(names) < 4:
        raise InvalidInputError(f"{len(names)} people are too few for footage: at least 4 are needed")
    clips = []
    for number in range(math.ceil(shots / _SHOTS)):
        made: list[FootageShot] = []
        for _ in range(min(_SHOTS, shots - number * _SHOTS)):
            start = made[-1].stop if made else 0.0
            motion, end = str(rng.choice(MOTIONS)), str(rng.choice(_CUTS))
            count = 2 if motion == "crossing" else int(rng.integers(1, 5))
            actors = _actors(rng, rng.choice(names, count, replace=False).tolist(), pictures, motion)
            seconds = round(float(rng.uniform(2.5, 5)) * RATE) / RATE
            mixed = 0.0 if end == "cut" else round(float(rng.uniform(0.5, 1.2)) * RATE) / RATE
            made.append(FootageShot(start, start + seconds, motion, actors, end, mixed))
        clips.append(Clip(f"clip_{number:04}.mp4", tuple(made), number % 5 == 4, number % 5 == 2))
    return clips


def _actors(
    rng: np.random.Generator, people: Sequence[str], pictures: Mapping[str, Sequence[str]], motion: str
) -> tuple[Actor, ...]:
    room = WIDTH / len(people)
    found = []
    for place, person in enumerate(people):
        side = min(room * float(rng.uniform(0.7, 0.95)), HEIGHT * float(rng.uniform(0.45, 0.8)))
        drift = float(rng.uniform(-30, 30)) if motion == "moving" else 0.0
        if motion == "crossing":
            drift = _CROSSED * WIDTH * (1 if place == 0 else -1)
        picture = str(pictures[person][int(rng.integers(len(pictures[person])))])
        y = HEIGHT / 2 + float(rng.uniform(-0.1, 0.1)) * HEIGHT
        if motion == "crossing":  # one in front of the other would be out of sight
            y, side = HEIGHT * (0.27 if place == 0 else 0.73), HEIGHT * 0.5
        found.append(Actor(person, picture, room * (place + 0.5), y, side, drift))
    return tuple(found)


def write_clip(lfw: Path, clip: Clip, path: Path, seed: int) -> None:
    """Compose and encode a clip, as MPEG-4, which OpenCV can write everywhere."""
    import cv2

    size = (HEIGHT, WIDTH) if clip.is_turned else (WIDTH, HEIGHT)
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*"mp4v"), RATE, size)
    if not writer.isOpened():
        raise InvalidInputError(f"OpenCV cannot write {path}: is there room on the disk?")
    times = frame_times(clip, seed)
    for frame in _frames(lfw, clip, times, seed):
        # Filmed with the camera on its side: a flag in the file says how to turn it back.
        writer.write(cv2.rotate(frame, cv2.ROTATE_90_COUNTERCLOCKWISE) if clip.is_turned else frame)
    writer.release()
    if clip.is_turned:
        set_turned(path)
    if clip.is_varying:
        set_times(path, np.diff([*times, clip.shots[-1].stop]) * RATE)


def frame_times(clip: Clip, seed: int) -> list[float]:
    """Return when the pictures of a clip begin, in seconds: at a steady rate, or half to twice as long."""
    end = clip.shots[-1].stop
    if not clip.is_varying:
        return [number / RATE for number in range(round(end * RATE))]
    rng = np.random.default_rng((seed, 37))
    lasting = rng.choice((1, 2, 2, 4), math.ceil(2 * end * RATE))  # in halves of a steady picture
    begins = np.concatenate([[0], np.cumsum(lasting)]) / (2 * RATE)
    return [float(begin) for begin in begins if begin < end - 0.01]


def _frames(lfw: Path, clip: Clip, times: Sequence[float], seed: int) -> Iterator[Picture]:
    import cv2

    scenes = [_Scene(lfw, shot, (seed, number)) for number, shot in enumerate(clip.shots)]
    starts = [shot.start for shot in clip.shots]
    for time in times:
        number = bisect_right(starts, time + 1e-6) - 1
        shot, frame = clip.shots[number], scenes[number].frame(time)
        share = 1 - (shot.stop - time) / shot.mixed if shot.mixed else 0.0
        if share > 0 and number + 1 < len(scenes):
            if shot.end == "dissolve":
                following = scenes[number + 1].frame(clip.shots[number + 1].start)
            else:
                following = np.zeros_like(frame)
            frame = np.asarray(cv2.addWeighted(frame, 1 - share, following, share, 0), np.uint8)
        yield frame


class _Scene:
    """A shot that can be drawn at any of its times."""

    def __init__(self, lfw: Path, shot: FootageShot, seed: Sequence[int]) -> None:
        import cv2

        self._shot = shot
        rng = np.random.default_rng(tuple(seed))
        tiles = rng.uniform(30, 220, (5, 12, 3)).astype(np.float32)
        wall = cv2.resize(tiles, (WIDTH + 120, HEIGHT), interpolation=cv2.INTER_CUBIC)
        noise = rng.normal(0, 6, wall.shape)
        self._wall = np.clip(wall + noise, 0, 255).astype(np.uint8)
        self._cut = {actor: self._picture(lfw / actor.picture) for actor in shot.actors}

    def _picture(self, path: Path) -> Picture:
        import cv2

        read = cv2.imread(str(path))
        if read is None:
            raise InvalidInputError(f"{path} cannot be read as a photo")
        picture = np.asarray(read, np.uint8)
        margin = round(0.16 * len(picture))  # shows other people's shoulders and ears
        picture = picture[margin:-margin, margin:-margin]
        if self._shot.motion == "blurred":
            picture = np.asarray(cv2.GaussianBlur(picture, (0, 0), 2.5), np.uint8)
        if self._shot.motion == "dark":
            picture = (picture * 0.35).astype(np.uint8)
        return picture

    def frame(self, time: float) -> Picture:
        """Return the picture at a time."""
        import cv2

        shot = self._shot
        share = (time - shot.start) / (shot.stop - shot.start)
        left = round(100 * min(max(share, 0.0), 1.0)) if shot.motion == "moving" else 40
        canvas: Picture = self._wall[:, left : left + WIDTH].copy()
        for actor in shot.actors:
            x, y, side = shot.place(actor, time)
            picture = self._cut[actor]
            size = max(8, round(side))
            scale = size / len(picture)
            angle = 25 * math.sin(2 * time) if shot.motion == "turned" else 0.0
            turn = cv2.getRotationMatrix2D((len(picture) / 2, len(picture) / 2), angle, scale)
            turn[:, 2] += np.array((x - len(picture) / 2, y - len(picture) / 2))
            cv2.warpAffine(picture, turn, (WIDTH, HEIGHT), dst=canvas, borderMode=cv2.BORDER_TRANSPARENT)
        return canvas
