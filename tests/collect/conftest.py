"""An archive of synthetic people with captions, and runs over it."""

from __future__ import annotations

import csv
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from setnet.collect import CollectRun, run_all

NAMES = {
    "P001": "Ann Cole",
    "P003": "Zoë Ray",
    "P005": "Ben van Eck",
    "P010": "Cid B Dole",
    "P002": "Eve Hill",
    "P004": "Dan Fox",
}
# Photo, who is in it, what its caption says. GroupingScores: P006 to P009.
PHOTOS = (
    ("gala/one.jpg", ("P001", "P003"), "Ann Cole and Zoe Ray at the gala"),
    ("gala/two.jpg", ("P003", "P001", "P008"), "RAY, ZOË and Ann Cole's brother"),
    ("gala/three.jpg", ("P005", "P010"), "B. van Eck with Cid Dole"),
    ("gala/four.jpg", ("P001", "P005"), "Ann Cole and Ben van Eck"),
    ("gala/alone.jpg", ("P003",), "Zoë Ray and Ann Cole (not pictured)"),
    ("fair/five.jpg", ("P002", "P004"), "Eve Hill, Dan Fox"),
    ("fair/six.jpg", ("P002", "P004", "P007"), "Dan Fox and Eve Hill with a friend"),
    ("fair/seven.jpg", ("P001", "P003", "P010"), "Ann Cole, Zoë Ray and C. B. Dole"),
    ("fair/others.jpg", ("P008", "P009"), "two visitors"),
    ("fair/single.jpg", ("P005", "P006"), "Ben van Eck and a visitor"),
)


@dataclass(frozen=True)
class Archive:
    """Folders of portraits and photos; not to be changed."""

    portraits: Path
    photos: Path


def scene(path: Path, people: tuple[str, ...], number: int) -> None:
    """Write a photo of people before a wall of its own: on a plain one, all photos of somebody look alike."""
    import cv2
    from PIL import Image

    from setnet.cli.demo_album import bust

    rng = np.random.default_rng(number)
    coarse = rng.integers(0, 256, (24, 21 * max(2, len(people)), 3), dtype=np.uint8)
    canvas = cv2.resize(coarse, (270 * max(2, len(people)), 300), interpolation=cv2.INTER_LINEAR)
    for place, person in enumerate(people):
        cutout = bust(person, number + place)
        size = (int(rng.integers(120, 150)), int(rng.integers(150, 180)))
        pixels, alpha = (cv2.resize(part, size) for part in (cutout.pixels, cutout.alpha))
        left = 270 * place + int(rng.integers(5, 110))
        part = canvas[300 - size[1] :, left : left + size[0]]
        part[:] = (part * (1 - alpha[..., None]) + pixels * alpha[..., None]).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(canvas).save(path, quality=92)


@pytest.fixture(scope="session")
def archive(_people: None, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """The archive, made once per test process."""
    place = tmp_path_factory.mktemp("archive")
    for person, name in NAMES.items():
        folder = place / "portraits" / name.replace(" ", "_")
        folder.mkdir(parents=True)
        for view in (1, 2):
            scene(folder / f"{view}.jpg", (person,), number=100 * view + int(person[1:]))
    (place / "portraits" / "Ann_Cole" / "landscape.jpg").write_bytes(_landscape())
    captions: dict[str, list[tuple[str, str]]] = {}
    for number, (photo, people, text) in enumerate(PHOTOS):
        scene(place / "photos" / photo, people, number)
        folder_name, name = photo.split("/")
        captions.setdefault(folder_name, []).append((name, text))
    for folder_name, rows in captions.items():
        table = place / "photos" / folder_name / "captions.csv"
        with table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("photo", "caption"), *rows])
    return Archive(place / "portraits", place / "photos")


def _landscape() -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    shades = np.linspace(60, 200, 300, dtype=np.uint8)
    Image.fromarray(np.repeat(np.tile(shades, (200, 1))[..., None], 3, axis=2)).save(buffer, "JPEG")
    return buffer.getvalue()


def new_run(place: Path, archive: Archive) -> CollectRun:
    """Begin a run over the archive in a folder."""
    return CollectRun.begin(place, portraits=archive.portraits, photos=[archive.photos], detector="yunet")


@pytest.fixture(scope="session")
def finished(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> CollectRun:
    """A run with all steps done; not to be changed."""
    run = new_run(tmp_path_factory.mktemp("runs") / "run", archive)
    for _ in run_all(run, workers=0):
        pass
    return run


@pytest.fixture
def own_run(finished: CollectRun, tmp_path: Path) -> CollectRun:
    """A copy of the finished run that a test may change."""
    shutil.copytree(finished.path, tmp_path / "run")
    return CollectRun.open(tmp_path / "run")
