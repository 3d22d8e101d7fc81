"""Faces in photos that are much longer than wide."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from setnet.faces import FaceSettings, extract_faces
from setnet.faces.detector import _parts

PLACES = [40, 940, 1690, 2600, 3350, 4300, 5650]  # of which 940 and 3350 lie across the end of a part


def panorama(people: Path) -> np.ndarray:
    """Return 6000 x 500 pixels with faces of about 55 pixels, which are 15 when it is searched as a whole."""
    canvas = np.full((500, 6000, 3), 110, np.uint8)
    for number, left in enumerate(PLACES):
        with Image.open(people / f"P00{number + 1}" / "assets" / "studio_portrait.jpg") as image:
            canvas[150:350, left : left + 200] = np.asarray(image.convert("RGB").resize((200, 200)))
    return canvas


@pytest.mark.parametrize("detector", ["cascade", "mtcnn", "yunet"])
def test_all_faces_of_a_panorama_are_found_once(people: Path, detector: str) -> None:
    file = io.BytesIO()
    Image.fromarray(panorama(people)).save(file, "JPEG", quality=90)
    found = extract_faces(file.getvalue(), FaceSettings(detector=detector))
    centres = [(face.box.x0 + face.box.x1) / 2 for face in found]
    assert np.abs(np.array(centres) - np.array(PLACES) - 100).max() < 30


def test_a_face_as_high_as_the_panorama_is_found(people: Path) -> None:
    canvas = np.full((600, 3000, 3), 110, np.uint8)
    with Image.open(people / "P001" / "assets" / "studio_portrait.jpg") as image:
        large = image.convert("RGB").resize((1400, 1400)).crop((400, 200, 1000, 800))
        canvas[:, 1200:1800] = np.asarray(large)
    (face,) = extract_faces(canvas)
    assert face.quality.size > 250


@pytest.mark.parametrize("shape", [(100, 301), (100, 1000), (1000, 70), (1, 50), (7, 22)])
def test_parts_cover_a_panorama_and_share_half_of_its_width(shape: tuple[int, int]) -> None:
    pixels = np.arange(shape[0] * shape[1] * 3, dtype=np.int64).reshape(*shape, 3)
    parts = _parts(pixels)  # type: ignore[arg-type]
    long, short = max(shape), min(shape)
    seen = np.zeros(long, bool)
    for x, y, part in parts:
        at = max(x, y)
        assert max(part.shape[:2]) == 2 * short
        assert (part == pixels[y : y + part.shape[0], x : x + part.shape[1]]).all()
        seen[at : at + 2 * short] = True
    assert seen.all()
    starts = [max(x, y) for x, y, _ in parts]
    assert all(b - a <= max(1, 2 * short - short // 2) for a, b in pairwise(starts))


def test_photos_of_common_shapes_are_searched_as_a_whole() -> None:
    for shape in [(300, 400, 3), (100, 300, 3), (300, 100, 3)]:
        assert _parts(np.zeros(shape, np.uint8)) == []
