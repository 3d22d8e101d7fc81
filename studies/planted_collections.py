"""Photos with altered copies planted among them, for `studies.duplicates`."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from setnet.cli.demo_album import PEOPLE, picture
from setnet.evaluate.people import SPLIT_FILE, read_press_photos, read_split
from setnet.faces import open_photo
from studies.alterations import ALTERATIONS, Pixels, altered

# Photos of LFW that are one photograph under two names, seen by looking at the pairs that agree most.
SEEN = SPLIT_FILE.with_name("lfw_duplicates.json")
_PICTURES = (
    *("amateur_posture", "amateur_selfie", "character_sheet"),
    *("emotions_sheet", "studio_portrait", "studio_posture"),
)


@dataclass(frozen=True, eq=False)
class Collection:
    """Photos of one half, and copies of the first `planted` of them, as files.

    `source` is the number of the photo that a file shows, `kind` the alteration of a copy (-1: an original).
    `same` has pairs of originals that are one photograph.
    """

    files: list[Path]
    names: list[str]
    source: NDArray[np.int64]
    kind: NDArray[np.int64]
    same: set[tuple[int, int]]

    @property
    def originals(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.kind < 0)

    def counts(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which pairs of files are to be judged: not those of photos that are the same anyway."""
        a, b = self.source[one], self.source[other]
        neutral = [
            (x, y) in self.same or (y, x) in self.same for x, y in zip(a.tolist(), b.tolist(), strict=True)
        ]
        return ~np.array(neutral, bool)


def names_of(photos: Path, half: str) -> list[str]:
    people = getattr(read_split(), half)
    found = (
        f"{path.parent.name}/{path.name}" for path in photos.glob("*/*.jpg") if path.parent.name in people
    )
    return sorted(found)


def of_lfw(lfw: Path, half: str, planted: int, others: int, folder: Path) -> Collection:
    """Copies of random photos of a half, among those of the most photographed people: many are of one event."""
    every = names_of(lfw / "images", half)
    names = np.random.default_rng(1).permutation(every)[:planted].tolist()
    photos = Counter(name.split("/")[0] for name in every)
    rest = sorted(set(every) - set(names), key=lambda name: (-photos[name.split("/")[0]], name))
    names += rest[:others]
    same = known_pairs(lfw, {name: number for number, name in enumerate(names)})
    return _planted([lfw / "images" / name for name in names], names, planted, folder, same)


def of_synthetic_people(planted: int, folder: Path) -> Collection:
    """All pictures of the synthetic people, at 640 pixels; 20 of them are sheets of one layout."""
    pictures = [(f"{person}-{name}", picture(person, name)) for name in _PICTURES for person in PEOPLE]
    return _drawn(pictures, planted, folder)


def without_faces(planted: int, folder: Path) -> Collection:
    """Clothes, lawns and paths below the synthetic people's heads, and scenes of random shapes."""
    cut = [(f"{person}-below", _lower(picture(person, "amateur_posture"))) for person in PEOPLE]
    cut += [(f"{person}-legs", _lower(picture(person, "studio_posture"))) for person in PEOPLE]
    pictures = [pair for number in range(20) for pair in (cut[number], (f"scene-{number}", _scene(number)))]
    return _drawn(pictures, planted, folder)


def _lower(pixels: Pixels) -> Pixels:
    return pixels[int(0.45 * len(pixels)) :]


def _scene(seed: int) -> Pixels:
    rng = np.random.default_rng((seed, 7))
    scene = cv2.resize(
        rng.integers(60, 200, (6, 8, 3), dtype=np.uint8), (640, 480), interpolation=cv2.INTER_CUBIC
    )
    for _ in range(int(rng.integers(10, 40))):
        corners = rng.integers(0, (640, 480), 2) + rng.integers(-120, 120, (int(rng.integers(3, 7)), 2))
        cv2.fillPoly(scene, [corners.astype(np.int32)], rng.integers(0, 256, 3).tolist())
    return np.asarray(scene, np.uint8)


def _drawn(pictures: Sequence[tuple[str, Pixels]], planted: int, folder: Path) -> Collection:
    files = []
    for name, pixels in pictures:
        image = Image.fromarray(np.ascontiguousarray(pixels))
        image.thumbnail((640, 640))
        files.append(folder / f"{name}.jpg")
        image.save(files[-1], quality=90)
    order = np.random.default_rng(1).permutation(len(files))
    names = [pictures[i][0] for i in order]
    return _planted([files[i] for i in order], names, planted, folder, set())


def _planted(
    photos: Sequence[Path], names: list[str], planted: int, folder: Path, same: set[tuple[int, int]]
) -> Collection:
    """Write altered copies of the first photos to a folder."""
    files, source, kind = list(photos), list(range(len(photos))), [-1] * len(photos)
    for number, name in enumerate(names[:planted]):
        pixels = open_photo(photos[number]).pixels
        for way, alteration in enumerate(ALTERATIONS):
            copy = altered(pixels, alteration, zlib.crc32(name.encode()))
            quality = 30 if alteration == "JPEG quality 30" else 90
            files.append(folder / f"{name.replace('/', '-')}-{way}.jpg")
            cv2.imwrite(str(files[-1]), copy[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
            source.append(number)
            kind.append(way)
    return Collection(files, names, np.array(source), np.array(kind), same)


def known_pairs(lfw: Path, numbers: dict[str, int]) -> set[tuple[int, int]]:
    """Return pairs of photos that are parts of one press photo, or one photograph twice (seen by eye)."""
    press = read_press_photos(lfw / "lists" / "multi_person_photos.json")
    groups = [[face["image"] for face in faces] for faces in press.values()]
    groups += json.loads(SEEN.read_text(encoding="utf-8"))
    found = set()
    for group in groups:
        known = [numbers[name] for name in group if name in numbers]
        found |= {(a, b) for a in known for b in known if a < b}
    return found
