"""Damaged and hostile video files: each is reported or read as far as it goes, and none stops a run."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from setnet.faces import FaceSettings
from setnet.library.photo_reader import PhotoReader, PhotoTask
from setnet.sandbox import Limits
from tests.support.clips import CODECS, Scene, write_clip

SETTINGS = FaceSettings(detector="yunet")
LIMITS = Limits(seconds=30.0)


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A small clip of each container, without people."""
    place = tmp_path_factory.mktemp("clips")
    scenes = [Scene((), 0.6), Scene((), 0.6, (140, 60, 40))]
    return {suffix: write_clip(place / f"clip{suffix}", scenes).read_bytes() for suffix in CODECS}


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return a damaged copy: bytes changed, numbers made huge, parts lost, repeated or cut off."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(max(1, len(found)))
        # Half of the damage is in the first bytes, where the container describes itself.
        place = place % 600 if chance.random() < 0.5 else place
        match chance.randrange(5):
            case 0:
                for _ in range(chance.randint(1, 20) if found else 0):
                    found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
            case 1:
                found[place : place + 4] = chance.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4)))
            case 2:
                del found[place : place + chance.randint(1, 400)]
            case 3:
                found[place:place] = found[place : place + chance.randint(1, 400)]
            case 4:
                del found[max(1, place) :]
    return bytes(found)


def results(clips: dict[str, bytes], suffix: str, count: int, tmp_path: Path) -> Iterator[str]:
    """Yield what became of damaged copies of a clip, in worker processes."""
    chance = random.Random(suffix)
    tasks = []
    for number in range(count):
        file = tmp_path / f"{number}{suffix}"
        file.write_bytes(mutated(clips[suffix], chance))
        tasks.append(PhotoTask(os.fsencode(file)))
    with PhotoReader(SETTINGS, 1, LIMITS) as reader:
        for result in reader.results(tasks):
            assert result.reason or result.shots
            assert all(0 <= (s.start or 0.0) < s.stop for s in result.shots)
            yield result.reason or "read"


@pytest.mark.parametrize("suffix", [".mp4", ".avi", ".mkv"])
def test_damaged_copies_are_reported_or_read(clips: dict[str, bytes], suffix: str, tmp_path: Path) -> None:
    assert len(list(results(clips, suffix, 8, tmp_path))) == 8


@pytest.mark.soak
@pytest.mark.parametrize("suffix", list(CODECS))
def test_a_thousand_damaged_copies(clips: dict[str, bytes], suffix: str, tmp_path: Path) -> None:
    found = list(results(clips, suffix, 1000, tmp_path))
    assert len(found) == 1000
    assert not [reason for reason in found if reason.startswith("unexpected")]


def test_files_without_a_picture_are_named(clips: dict[str, bytes], tmp_path: Path) -> None:
    files = {
        "empty.mp4": b"",
        "text.mkv": b"this is no video" * 100,
        "zeros.mov": bytes(5000),
        "picture.avi": b"\xff\xd8\xff\xe0" + bytes(100),
        "av1.mp4": b"\0\0\0\x08ftyp" + b"\0\0\0\x18moov" + b"\0\0\0\x10stsdav01" + bytes(8),
        "av1.webm": b"\x1aE\xdf\xa3" + bytes(30) + b"V_AV1" + bytes(30),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    tasks = [PhotoTask(os.fsencode(tmp_path / name)) for name in (*files, "absent.mp4")]
    with PhotoReader(SETTINGS, 0) as reader:
        reasons = {os.path.basename(r.path): r.reason or "" for r in reader.results(tasks)}
    assert reasons[b"empty.mp4"] == "the file is empty"
    assert "No such file" in reasons[b"absent.mp4"]
    assert all("AV1, which setnet cannot decode" in reasons[n] for n in (b"av1.mp4", b"av1.webm"))
    assert all("not a video that setnet can read" in reasons[n] for n in (b"text.mkv", b"zeros.mov"))
