"""Photos that kill, block or fill the process that reads them cost themselves only."""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import ModelError, WorkerError
from setnet.faces import Box, Face, FaceSettings, Quality
from setnet.library import Library
from setnet.library.photo_reader import PhotoReader, PhotoResult, PhotoTask, faces_in, faces_to_arrays
from setnet.sandbox import Limits, Message
from setnet.sandbox.messages import as_bytes

SETTINGS = FaceSettings()
DIM = 128


def tasks_of(*paths: Path) -> list[PhotoTask]:
    return [PhotoTask(os.fsencode(path)) for path in paths]


def test_a_worker_that_dies_costs_one_photo(tmp_path: Path, many: Path) -> None:
    blocking = tmp_path / "blocking.jpg"
    os.mkfifo(blocking)
    before, *after = sorted(many.iterdir())[:6]

    def kill_its_reader() -> None:
        writer = os.open(blocking, os.O_WRONLY)  # returns when the process has opened it too
        (process,) = reader.pool._calls
        os.kill(process._process.pid, signal.SIGKILL)
        os.close(writer)

    with PhotoReader(SETTINGS, workers=1) as reader:
        killer = threading.Thread(target=kill_its_reader)
        killer.start()
        results = list(reader.results(tasks_of(before, blocking, *after)))
        killer.join()
    assert len(results) == 7
    bad = [result for result in results if result.reason]
    assert [result.path for result in bad] == [os.fsencode(blocking)]
    assert "died (signal 9)" in str(bad[0].reason)
    assert bad[0].mtime_ns > 0


def test_workers_that_cannot_start_stop_the_run(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ModelError, match="as soon as they start"), PhotoReader(SETTINGS, workers=1) as reader:
        list(reader.results(tasks_of(*many.iterdir())))


def test_a_photo_that_takes_for_ever_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless.jpg")  # opening it waits for a writer that never comes
    with PhotoReader(SETTINGS, workers=1, limits=Limits(seconds=1.0)) as reader:
        (result,) = reader.results(tasks_of(tmp_path / "endless.jpg"))
    assert "took longer than 1 s" in str(result.reason)


def test_a_run_that_is_stopped_does_not_wait_for_a_photo_that_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless.jpg")
    with PhotoReader(SETTINGS, workers=1, limits=Limits(seconds=600)) as reader:
        assert list(reader.results(tasks_of(tmp_path / "endless.jpg"), should_stop=lambda: True)) == []


def grey_png(side: int) -> bytes:
    """Return a PNG of 16-bit black pixels: a few kilobytes that unpack to side x side."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    pixels = b"".join(packer.compress(bytes(2 * side + 1)) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 16, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_a_photo_that_needs_too_much_memory_fails_and_the_run_goes_on(
    tmp_path: Path, compose: Callable[..., None]
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "bomb.png").write_bytes(grey_png(10_000))
    compose(tmp_path / "photos" / "good.jpg", ("P001",))
    with Library.create(tmp_path / "library") as library:
        report = library.index([tmp_path / "photos"], workers=1, limits=Limits(memory=500 << 20))
        assert report.added == 1
        ((path, reason),) = report.failed
        assert path.name == "bomb.png"
        assert reason == "needs more memory than one task may use (0.5 GB)"
        assert library.check() == []


def test_processes_find_what_this_process_finds(many: Path) -> None:
    tasks = tasks_of(*sorted(many.iterdir())[:3], many / "absent.jpg")
    found = []
    for workers in (0, 1):
        with PhotoReader(SETTINGS, workers) as reader:
            found.append(sorted(reader.results(tasks), key=lambda result: result.path))
    for here, there in zip(*found, strict=True):
        assert _without_arrays(here) == _without_arrays(there)
        if here.descriptors is not None:
            assert there.descriptors is not None
            assert np.array_equal(here.descriptors, there.descriptors)
    assert [result.reason for result in found[0]] == [None] * 3 + [
        "cannot be read: No such file or directory"
    ]


def _without_arrays(result: PhotoResult) -> PhotoResult:
    return replace(result, descriptors=None)


def a_reply(**changes: object) -> Message:
    fields: dict[str, object] = {
        "size": 9,
        "mtime_ns": 1,
        "is_known": False,
        "reason": None,
        "taken": 0.0,
        "width": 20,
        "height": 10,
        "colour": 0x808080,
    }
    arrays: dict[str, Any] = {"hash": np.zeros(16, np.uint8), "thumbnail": as_bytes(b"\xff\xd8\xff")}
    arrays |= faces_to_arrays([a_face()], DIM)
    for name, value in changes.items():
        (arrays if name in arrays else fields)[name] = value
    return Message("done", fields, arrays)


def a_face() -> Face:
    quality = Quality(40.0, 0.9, 0.1, 1.0, 2.0, 3.0)
    return Face(
        Box(1.5, 2.0, 5.0, 6.0), np.ones((5, 2), np.float32), 0.9, quality, np.eye(1, DIM, dtype="f4")[0]
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", -1),
        ("size", 1 << 70),
        ("mtime_ns", "now"),
        ("is_known", True),  # no such content was named in the task: it would be read again and again
        ("is_known", None),
        ("reason", ["x"]),
        ("taken", 1e300),
        ("width", 0),
        ("height", 2.5),
        ("hash", np.zeros(15, np.uint8)),
        ("thumbnail", as_bytes(b"<svg>")),
        ("colour", 1 << 24),
        ("boxes", np.zeros((1, 3))),
        ("boxes", np.full((1, 4), np.nan)),
        ("landmarks", np.zeros((2, 5, 2), np.float32)),
        ("scores", np.zeros(1, np.float32)),
        ("quality", np.zeros((1, 5))),
        ("descriptors", np.eye(1, DIM - 1, dtype=np.float32)),
        ("descriptors", np.zeros((1, DIM), np.float32)),
        ("descriptors", np.full((1, DIM), np.inf, np.float32)),
    ],
)
def test_replies_that_no_photo_has_are_refused(name: str, value: object) -> None:
    task = PhotoTask(b"/photo.jpg")
    with PhotoReader(SETTINGS, workers=1) as reader:
        assert len(reader._parse(task, a_reply()).faces) == 1
        with pytest.raises(WorkerError, match="invalid reply"):
            reader._parse(task, a_reply(**{name: value}))


def test_faces_come_back_as_they_were_sent() -> None:
    sent = a_face()
    (face,), (descriptor,) = faces_in(Message("done", arrays=faces_to_arrays([sent], DIM)), DIM)
    assert (face.box, face.score, face.quality) == (sent.box, sent.score, asdict(sent.quality))
    assert np.array_equal(face.landmarks, sent.landmarks)
    assert np.array_equal(descriptor, sent.descriptor)
