"""Videos composed with known cuts and people, and how well both are found."""

from __future__ import annotations

import math
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, PhotoError
from setnet.evaluate.measures import ndcg
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.settings import Settings as BaseSettings
from setnet.evaluate.settings import experiment, option, setting
from setnet.evaluate.tables import Table
from setnet.library import Conditions, Library, LibraryPhoto, QueryPerson
from studies.album import lfw_pictures

_HOLDERS = (b"moov", b"trak", b"mdia", b"minf", b"stbl")  # boxes around the list of times, outermost first
_DURATIONS = {
    b"mvhd": 20,
    b"tkhd": 24,
    b"elst": 12,
    b"mdhd": 20,
}  # bytes from the name of a box to its duration


def set_turned(path: Path) -> None:
    """Set the flag of an MP4 file that says to turn its pictures by 90 degrees to the right."""
    data = bytearray(path.read_bytes())
    place = data.find(b"tkhd") + 44
    one, minus = (1 << 16).to_bytes(4, "big"), (-(1 << 16)).to_bytes(4, "big", signed=True)
    zero, last = bytes(4), (1 << 30).to_bytes(4, "big")
    data[place : place + 36] = b"".join((zero, one, zero, minus, zero, zero, zero, zero, last))
    path.write_bytes(data)


def set_times(path: Path, lengths: NDArray[np.float64]) -> None:
    """Let the pictures of an MP4 file with a steady rate last so many times as long as they do, each.

    The file ends with its description, as OpenCV writes it: a longer list of times moves nothing else.
    """
    data = bytearray(path.read_bytes())
    begin = data.find(b"moov") - 4
    place = data.find(b"stts", begin) - 4
    size, usual = (int.from_bytes(data[at : at + 4], "big") for at in (place, place + 20))
    rows = b"".join(
        (1).to_bytes(4, "big") + round(usual * float(length)).to_bytes(4, "big") for length in lengths
    )
    table = bytes(4) + len(lengths).to_bytes(4, "big") + rows
    data[place : place + size] = (8 + len(table)).to_bytes(4, "big") + b"stts" + table
    longer = float(lengths.mean())
    for name, offset in _DURATIONS.items():
        at = data.find(name, begin) + offset
        whole = round(int.from_bytes(data[at : at + 4], "big") * longer)
        data[at : at + 4] = whole.to_bytes(4, "big")
    for name in _HOLDERS:
        at = data.find(name, begin) - 4
        whole = int.from_bytes(data[at : at + 4], "big") + 8 + len(table) - size
        data[at : at + 4] = whole.to_bytes(4, "big")
    path.write_bytes(data)


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
    for at in times:
        number = bisect_right(starts, at + 1e-6) - 1
        shot, frame = clip.shots[number], scenes[number].frame(at)
        share = 1 - (shot.stop - at) / shot.mixed if shot.mixed else 0.0
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


TITLE = "Videos, on composed footage"
LIMITS, PEOPLE = "limits of shots", "people in shots"
_NEAR = 0.5  # seconds from a true limit, or from the transition around it
_MODES = ("exact", "set")


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Clips composed of LFW pictures: limits of shots, people in them, two-person queries."""

    lfw: Path = field(
        metadata=option("LFW's folder of identities.", metavar="LFW", is_argument=True, counts=False)
    )
    work: Path = field(
        metadata=option("The clips and their library are kept here.", metavar="DIR", counts=False)
    )
    shots: int = setting(500, "Shots to compose.", minimum=8)
    queries: int = setting(100, "How many queries.", minimum=1)


@experiment("video")
def run(run: Run, settings: Settings) -> None:
    """Measure what is found in footage composed of LFW pictures of test-half people."""
    lfw, work = settings.lfw, settings.work
    run.total = len(_MODES) + 2
    pictures = {name: files for name, files in lfw_pictures(lfw).items() if len(files) > 1}
    # The first picture of each person is for queries alone.
    clips = plan_footage({name: files[1:] for name, files in pictures.items()}, settings.shots, settings.seed)
    run.say("composing clips")
    (work / "clips").mkdir(parents=True, exist_ok=True)
    for number, clip in enumerate(clips):
        if not (work / "clips" / clip.name).is_file():
            part = work / f"{clip.name}.part.mp4"
            write_clip(lfw, clip, part, 10_000 * settings.seed + number)
            os.replace(part, work / "clips" / clip.name)
    seconds = sum(clip.shots[-1].stop for clip in clips)
    run.note(world=f"{len(clips)} clips of {seconds / 60:.1f} minutes composed of LFW pictures")
    run.say("indexing clips")
    started = time.monotonic()
    with Library.open_or_create(work / "library") as library:
        if library.index([work / "clips"]).added:
            run.note(indexing_seconds=round(time.monotonic() - started, 1))
        found = {
            clip.name: library.photos.video_shots(os.fsencode((work / "clips" / clip.name).absolute()))
            for clip in clips
        }
        _add_found(run, clips, found)
        portraits = {name: lfw / files[0] for name, files in pictures.items()}
        _add_queries(run, library, clips, found, portraits, settings.queries)


def _add_found(run: Run, clips: Sequence[Clip], found: Mapping[str, Sequence[LibraryPhoto]]) -> None:
    limits = [_limits(clip, found[clip.name]) for clip in clips]
    run.add(Row(LIMITS, _rates(np.sum(limits, axis=0))))
    by_motion = {motion: np.zeros(3) for motion in MOTIONS}
    for clip in clips:
        for shot, right, wrong in _people(clip, found[clip.name]):
            by_motion[shot.motion] += (right, wrong, len(shot.actors) - right)
    run.add(Row(PEOPLE, _rates(sum(by_motion.values()))))
    for motion, counts in by_motion.items():
        if counts.any():
            run.add(Row(f"{PEOPLE}: {motion}", _rates(counts)))


def _rates(counts: object) -> dict[str, list[float]]:
    """Return precision, recall and F1, in percent, of (right, wrong, missed)."""
    right, wrong, missed = np.asarray(counts, np.float64)
    precision, recall = right / max(right + wrong, 1e-9), right / max(right + missed, 1e-9)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return {"precision": [100 * precision], "recall": [100 * recall], "f1": [100 * f1]}


def _limits(clip: Clip, found: Sequence[LibraryPhoto]) -> tuple[int, int, int]:
    """Return how many limits between shots are right, wrong and missed."""
    true = [(shot.stop - shot.mixed, shot.stop) for shot in clip.shots[:-1]]
    guesses = [shot.start or 0.0 for shot in found[1:]]
    right = 0
    for begin, end in true:
        near = [guess for guess in guesses if begin - _NEAR <= guess <= end + _NEAR]
        if near:
            guesses.remove(near[0])
            right += 1
    return right, len(guesses), len(true) - right


def _people(clip: Clip, found: Sequence[LibraryPhoto]) -> list[tuple[FootageShot, int, int]]:
    """Return for each true shot how many of its people were found, and how many faces are wrong."""
    results = []
    for shot in clip.shots:
        seen: list[str] = []
        wrong = 0
        for other in found:
            middle = ((other.start or 0.0) + (other.stop or 0.0)) / 2
            if shot.start <= middle < shot.stop:
                names = [_actor_at(shot, face.box, face.at or middle) for face in other.faces]
                seen += [name for name in names if name is not None]
                wrong += names.count(None) + len(names) - names.count(None) - len({*names} - {None})
        results.append((shot, len(set(seen)), wrong))
    return results


def _actor_at(shot: FootageShot, box: tuple[float, float, float, float], time: float) -> str | None:
    for actor in shot.actors:
        x, y, _ = shot.place(actor, time)
        if box[0] <= x <= box[2] and box[1] <= y <= box[3]:
            return actor.person
    return None


def _add_queries(
    run: Run,
    library: Library,
    clips: Sequence[Clip],
    found: Mapping[str, Sequence[LibraryPhoto]],
    portraits: Mapping[str, Path],
    count: int,
) -> None:
    inside: dict[str, set[str]] = {}
    for clip in clips:
        for shot in clip.shots:
            for other in found[clip.name]:
                middle = ((other.start or 0.0) + (other.stop or 0.0)) / 2
                if shot.start <= middle < shot.stop:
                    inside[other.id] = {actor.person for actor in shot.actors}
    pairs = sorted({tuple(sorted(who)[:2]) for who in inside.values() if len(who) >= 2})
    rng = np.random.default_rng(9)
    chosen = [pairs[i] for i in rng.permutation(len(pairs))[:count]]
    people = _query_people(library, {name for pair in chosen for name in pair}, portraits)
    chosen = [pair for pair in chosen if all(name in people for name in pair)]
    run.note(queries=len(chosen), shots_found=len(inside))
    for mode in _MODES:
        run.say(mode)
        values = []
        for pair in chosen:
            hits = library.search(
                [people[name] for name in pair], k=30, mode=mode, conditions=Conditions(kind="video")
            ).hits
            worth = {photo: len(who & set(pair)) for photo, who in inside.items() if who & set(pair)}
            values.append(float(ndcg([worth.get(h.photo.id, 0) for h in hits] or [0], [*worth.values()], 10)))
        run.add(Row(f"two people, {mode}", {"ndcg10": values}))


def _query_people(library: Library, names: set[str], portraits: Mapping[str, Path]) -> dict[str, QueryPerson]:
    found = {}
    for name in sorted(names):
        try:
            person = library.person(str(portraits[name]))
            found[name] = QueryPerson(name, person.descriptors)
        except (InvalidInputError, PhotoError):  # no face found in it
            continue
    return found


_MEASURES = {"precision": "precision", "recall": "recall", "f1": "F1", "ndcg10": "nDCG@10"}


def tables(record: Record) -> list[Table]:
    """Return shots, people and queries in one table; what does not apply to a row is left empty."""
    note = (
        "In percent. A limit counts when it is at most 0.5 s from the true one; a person when one element of "
        "the shot is theirs, and each further one is wrong. Queries: one picture per person, in no clip."
    )
    cells = tuple((row.name, *(_cell(row, key) for key in _MEASURES)) for row in record.rows)
    return [Table("Composed footage", ("what", *_MEASURES.values()), cells, note=note)]


def _cell(row: Row, key: str) -> str:
    if key not in row.values:
        return ""
    mean, error = row.estimate(key)
    return f"{mean:.1f}" if len(row.values[key]) < 2 else f"{mean:.1f} ± {error:.1f}"


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.video")
