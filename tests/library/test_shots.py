"""Shots of videos are stored beside photos, checked, repaired and backed up."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from setnet.library import Library, StoredFace
from setnet.library.paths import shot_path
from setnet.library.photo_reader import PhotoResult
from setnet.library.photo_writer import PhotoWriter
from tests.support.invented_photos import face_of
from tests.support.invented_photos import store as store_photos

VIDEO = b"/invented/party.mp4"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A library of four photos."""
    with Library.create(tmp_path / "library") as library:
        store_photos(library, {"a": [1], "b": [1, 2], "c": [], "d": [1, 2, 3]})
    return tmp_path / "library"


def shot(start: float, stop: float, *people: int) -> PhotoResult:
    """Return a shot of an invented video with these people."""
    quality = json.dumps({"size": 90.0, "score": 0.9})
    track = np.array([[start, 0, 0, 80, 100]], "<f4").tobytes()
    faces = [
        StoredFace(i, 100.0 * i, 50, 100.0 * i + 80, 150, 0.9, bytes(40), quality, start, 1.5, track)
        for i in range(len(people))
    ]
    return PhotoResult(
        shot_path(VIDEO, start, stop),
        size=1,
        mtime_ns=5,
        hash=bytes([int(start)]) * 16,
        width=320,
        height=180,
        faces=tuple(faces),
        descriptors=np.stack([face_of(person) for person in people]) if people else None,
        start=start,
        stop=stop,
        best=start,
        video=b"v" * 16,
    )


def store(library: Library, *shots: PhotoResult) -> None:
    with library._writing() as index:
        PhotoWriter(library._database, index).store(shots)


def test_shots_are_stored_beside_photos(path: Path) -> None:
    with Library.open(path) as library:
        assert library.photos.counts().shots == 0
        assert {photo.kind for photo in library.photos.all_photos()} == {"photo"}
        store(library, shot(0, 2, 1, 2), shot(2, 4, 3))
        assert [s.start for s in library.photos.video_shots(VIDEO)] == [0, 2]
        assert library.photos.known_files()[VIDEO].hash == b"v" * 16
        library.groups.update()
        assert library.check() == []


def test_a_shot_that_lost_its_row_is_found_by_the_check_and_read_again_after_a_repair(path: Path) -> None:
    with Library.open(path) as library:
        store(library, shot(0, 2, 1), shot(2, 4, 3))
    with sqlite3.connect(path / "library.db") as db:
        db.execute("UPDATE photos SET start = NULL WHERE start = 2")
    with Library.open(path) as library:
        assert library.check() != []
    Library.repair(path)
    with Library.open(path) as library:
        assert library.check() == []
        assert library.photos.video_shots(VIDEO) == []  # until a run reads the video again
        assert library.photos.known_files()[VIDEO].state == "unread"
        assert len(list(library.photos.all_photos())) == 4


def test_a_backup_has_the_shots(path: Path, tmp_path: Path) -> None:
    with Library.open(path) as library:
        store(library, shot(0, 2, 1), shot(2, 4, 3))
        library.backup(tmp_path / "backup")
    with Library.open(tmp_path / "backup") as copy:
        faces = [s.faces[0] for s in copy.photos.video_shots(VIDEO)]
        assert [(face.at, face.seen, face.track.shape) for face in faces] == [
            (0, 1.5, (1, 5)),
            (2, 1.5, (1, 5)),
        ]
