"""Photos, faces and hits as the library returns them, each with its one JSON form.

The fields of `to_dict` are those of `setnet search --json` and of the REST API: they may grow, and are never
renamed or retyped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.faces import Box
from setnet.library.paths import as_path, display_path

_EPOCH = datetime(1970, 1, 1)

HASH_BYTES = 16

PathText = Callable[[bytes | Path], str]


def content_hash(data: bytes) -> bytes:
    """Return the hash of a file's bytes."""
    return blake2b(data, digest_size=HASH_BYTES).digest()


def corners(box: Box) -> list[float]:
    """Return x0, y0, x1, y1 of a box in tenths of a pixel.

    >>> corners(Box(1.23, 4, 5.67, 8))
    [1.2, 4.0, 5.7, 8.0]
    """
    return [round(10 * value) / 10 for value in box]  # `round(value, 1)` takes three times as long


def clock(seconds: float) -> str:
    """Return a time in a video as a player shows it.

    >>> clock(72.9), clock(3723)
    ('01:12', '1:02:03')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def taken_number(taken: datetime | None) -> float | None:
    """Return a photo's time as a number: cameras write local time without a zone, so none is applied."""
    return None if taken is None else taken.replace(tzinfo=UTC).timestamp()


def taken_time(number: float | None) -> datetime | None:
    """Return the local time of a stored number."""
    return None if number is None else _EPOCH + timedelta(seconds=number)


class StoredFace(NamedTuple):
    """A face of a photo in the library, as its row; `ordinal` is the number of its element in the index.

    Of a person in a shot it is the best picture: `at` is its time in the video, `seen` the seconds for which
    the person is seen.
    """

    ordinal: int
    x0: float
    y0: float
    x1: float
    y1: float
    score: float
    stored_landmarks: bytes
    stored_quality: str
    at: float | None = None
    seen: float | None = None
    stored_track: bytes = b""

    @property
    def box(self) -> Box:
        """The rectangle around the face."""
        return Box(self.x0, self.y0, self.x1, self.y1)

    @property
    def corners(self) -> list[float]:
        """The rectangle as `corners` writes it, which an answer has for every face."""
        return [
            round(10 * self.x0) / 10,
            round(10 * self.y0) / 10,
            round(10 * self.x1) / 10,
            round(10 * self.y1) / 10,
        ]

    @property
    def landmarks(self) -> NDArray[np.float32]:
        """Eyes, nose and corners of the mouth: (5, 2) in pixels."""
        return np.frombuffer(self.stored_landmarks, "<f4").reshape(5, 2)

    @property
    def quality(self) -> Mapping[str, float]:
        """How well it can be recognised: size, score, sharpness, yaw, pitch, roll."""
        known: dict[str, float] = json.loads(self.stored_quality)
        return known

    @property
    def track(self) -> NDArray[np.float32]:
        """Of a person in a shot, (looks, 5): time, x0, y0, x1, y1 of each look at the person."""
        return np.frombuffer(self.stored_track, "<f4").reshape(-1, 5)

    def corners_at(self, time: float | None) -> list[float]:
        """Return the rectangle at about a time of the video; of a face in a photo, where it is."""
        if time is None or not self.stored_track:
            return self.corners
        track = self.track
        return corners(Box(*track[np.argmin(np.abs(track[:, 0] - time)), 1:].tolist()))

    def to_dict(self) -> dict[str, Any]:
        """Return the face as values that JSON can hold."""
        return {"box": self.corners, "score": round(self.score, 4), "quality": dict(self.quality)}

    def place(self, best: float | None = None) -> dict[str, Any]:
        """Return where the face is, as values that JSON can hold; in a shot at its `best` time, and when."""
        found: dict[str, Any] = {"box": self.corners_at(best)}
        return found if self.at is None else found | {"at": self.at, "seen": self.seen}


class LibraryPhoto(NamedTuple):
    """A photo of the library with its faces, in pixels of the upright photo; or a shot of a video.

    Attributes
    ----------
    start, stop, best
        Of a shot, in seconds of the video: its limits, and when its people are best seen.
    stored_video
        Of a shot, the hash of the video's content; `stored_hash` is then the shot's own.
    note
        What could not be read of the file, if so.
    external_id
        The id by which another program knows the photo.
    colour
        The mean of its colours, as 0xrrggbb: what is shown until its picture is there.
    """

    id: str
    stored_path: bytes
    size: int
    stored_hash: bytes
    taken: datetime | None
    width: int
    height: int
    faces: tuple[StoredFace, ...]
    start: float | None = None
    stop: float | None = None
    best: float | None = None
    stored_video: bytes = b""
    stored_taken_from: str | None = None
    note: str | None = None
    external_id: str | None = None
    colour: int | None = None

    @property
    def taken_from(self) -> str | None:
        """Where the time is from: `exif` (the camera), `name` (the file's name) or `file` (its own time)."""
        return None if self.taken is None else self.stored_taken_from or "exif"

    @property
    def kind(self) -> str:
        """Whether it is a photo or a shot of a video: `photo` or `video`."""
        return "photo" if self.start is None else "video"

    @property
    def display_name(self) -> str:
        """The path for people to read, of a shot with its times: `party.mp4 00:12-00:19`."""
        times = "" if self.start is None else f" {clock(self.start)}-{clock(self.stop or self.start)}"
        return display_path(self.stored_path) + times

    @property
    def path(self) -> Path:
        """Where the file is."""
        return as_path(self.stored_path)

    @property
    def content(self) -> str:
        """The hash of the file's bytes."""
        return self.stored_hash.hex()

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, Any]:
        """Return the photo as values that JSON can hold; `version` changes with the file's content."""
        return {
            "photo": path_text(self.stored_path),
            "id": self.id,
            **self.file_facts(),
            "faces": [face.place(self.best) for face in self.faces],
        }

    def file_facts(self) -> dict[str, Any]:
        """Return what is known of the file, as values that JSON can hold."""
        folder, slash, name = display_path(self.stored_path).rpartition("/")
        return {
            "name": name,
            "folder": folder or slash,
            "version": self.content[:12],
            "taken": self.taken.isoformat() if self.taken else None,
            "width": self.width,
            "height": self.height,
            "bytes": self.size,
            "kind": self.kind,
            "from": self.start,
            "to": self.stop,
            "taken_from": self.taken_from,
            "note": self.note,
            "external_id": self.external_id,
            "colour": None if self.colour is None else f"#{self.colour:06x}",
        }


class FailedPhoto(NamedTuple):
    """A file that could not be read as a photo, and why."""

    id: str
    path: Path
    reason: str

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, str]:
        """Return the file and the reason as values that JSON can hold."""
        return {"photo": path_text(self.path), "reason": self.reason}


class PersonMatch(NamedTuple):
    """A person of the query who is in the photo, and the face they were matched with.

    `probability` is that of the face being theirs; a `sure` match is one that next to no stranger reaches.
    `face` is None, and the similarity 0, where a tag says that they are there and no face is theirs; the box
    is then the tag's, if it has one.
    """

    person: str
    similarity: float
    face: int | None
    box: Box | None
    probability: float
    sure: bool

    @property
    def label(self) -> str:
        """The person's name, with a question mark when the match is not sure."""
        return self.person if self.sure else f"{self.person}?"

    def to_dict(self) -> dict[str, Any]:
        """Return the match as values that JSON can hold."""
        return {
            "person": self.person,
            "similarity": round(self.similarity, 6),
            "face": self.face,
            "box": None if self.box is None else corners(self.box),
            "probability": round(self.probability, 6),
            "sure": self.sure,
        }


def stack_to_dict(
    copies: Iterable[LibraryPhoto], others: Iterable[LibraryPhoto], path_text: PathText = os.fsdecode
) -> dict[str, Any]:
    """Return the photos that one stands for as values that JSON can hold."""
    return {
        name: [{"photo": path_text(photo.stored_path), "id": photo.id} for photo in photos]
        for name, photos in (("copies", copies), ("others", others))
    }


class PhotoHit(NamedTuple):
    """A photo that was found; `matches` has the people who are in it, in the order of the query.

    In a collapsed answer it also stands for `copies` of the same content, and `others` of the same burst.
    """

    photo: LibraryPhoto
    score: float
    matches: tuple[PersonMatch, ...]
    copies: tuple[LibraryPhoto, ...] = ()
    others: tuple[LibraryPhoto, ...] = ()

    @property
    def path(self) -> Path:
        """Where the photo is."""
        return self.photo.path

    @property
    def people(self) -> tuple[str, ...]:
        """The people of the query who are in the photo."""
        return tuple(m.person for m in self.matches)

    @property
    def sure_people(self) -> tuple[str, ...]:
        """The people of the query who are surely in the photo."""
        return tuple(m.person for m in self.matches if m.sure)

    def to_dict(self, path_text: PathText = os.fsdecode) -> dict[str, Any]:
        """Return the hit as values that JSON can hold: its photo, and what makes it a hit."""
        return self.photo.to_dict(path_text) | {
            "score": round(self.score, 6),
            "matches": [self._match(match) for match in self.matches],
            **stack_to_dict(self.copies, self.others, path_text),
        }

    def _match(self, match: PersonMatch) -> dict[str, Any]:
        if self.photo.start is None or match.face is None:
            return match.to_dict()
        return match.to_dict() | {"box": self.photo.faces[match.face].corners_at(self.photo.best)}
