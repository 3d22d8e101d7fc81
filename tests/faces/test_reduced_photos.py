"""Faces in photos of which not all pixels were decoded, beside the same with all of them."""

from __future__ import annotations

import io
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from setnet.faces import Face, FaceSettings, Photo, extract_faces, open_photo

DETECTORS = ["cascade", "mtcnn", "yunet"]


def photo_of(people: Path, face: int, orientation: int = 1) -> bytes:
    """Return a 12-megapixel JPEG of two synthetic people whose faces are about `face` pixels large."""
    canvas = np.full((3000, 4000, 3), 110, np.uint8)
    side = round(face / 0.27)  # of which the face is so much in these portraits
    for place, person in enumerate(("P001", "P005")):
        with Image.open(people / person / "assets" / "studio_portrait.jpg") as image:
            portrait = np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.LANCZOS))
        left = 200 + 1900 * place
        canvas[600 : 600 + side, left : left + side] = portrait[: 3000 - 600, : 4000 - left]
    if orientation == 6:
        canvas = np.ascontiguousarray(np.rot90(canvas))
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    Image.fromarray(canvas).save(file, "JPEG", quality=90, exif=exif)
    return file.getvalue()


def counted(photo: Photo) -> tuple[Photo, list[int]]:
    """Return the photo with a list that grows by one whenever it is decoded in full."""
    calls: list[int] = []

    def decode() -> Photo:
        calls.append(1)
        return photo.in_full()

    return Photo(
        photo.pixels, photo.taken, photo.width, photo.height, photo.format, photo.reduction, decode
    ), calls


def assert_alike(reduced: list[Face], full: list[Face], pixels: float, similarity: float) -> None:
    assert len(reduced) == len(full) == 2
    for a, b in zip(reduced, full, strict=True):
        assert np.abs(np.array(a.box) - np.array(b.box)).max() <= pixels
        assert np.abs(a.landmarks - b.landmarks).max() <= pixels
        assert a.quality.size == pytest.approx(b.quality.size, rel=0.05)
        assert float(a.descriptor @ b.descriptor) >= similarity


@pytest.mark.parametrize("detector", DETECTORS)
def test_large_faces_are_described_from_half_the_size(people: Path, detector: str) -> None:
    data, settings = photo_of(people, 400), FaceSettings(detector=detector)
    photo, decoded = counted(open_photo(data, enough=settings.longest_side))
    assert photo.reduction == 2
    # YuNet places landmarks in the searched copy, where a pixel is 2.5 of the photo's.
    assert_alike(extract_faces(photo, settings), extract_faces(open_photo(data), settings), 12, 0.95)
    assert not decoded


@pytest.mark.parametrize("detector", DETECTORS)
def test_small_faces_are_described_from_all_pixels(people: Path, detector: str) -> None:
    data, settings = photo_of(people, 100), FaceSettings(detector=detector)
    photo, decoded = counted(open_photo(data, enough=settings.longest_side))
    assert_alike(extract_faces(photo, settings), extract_faces(open_photo(data), settings), 3, 0.97)
    assert len(decoded) == 1


def test_a_file_is_read_as_a_reduced_photo_is(people: Path, tmp_path: Path) -> None:
    data = photo_of(people, 400)
    (tmp_path / "two.jpg").write_bytes(data)
    reduced = extract_faces(open_photo(data, enough=1600))
    for source in (data, tmp_path / "two.jpg"):
        for a, b in zip(extract_faces(source), reduced, strict=True):
            assert a.box == b.box
            np.testing.assert_array_equal(a.descriptor, b.descriptor)


def test_boxes_are_those_of_the_upright_photo(people: Path) -> None:
    plain, turned = (extract_faces(photo_of(people, 400, orientation)) for orientation in (1, 6))
    assert_alike(turned, plain, 12, 0.95)


def test_the_smallest_face_is_in_pixels_of_the_photo(people: Path) -> None:
    data = photo_of(people, 400)
    sizes = [face.quality.size for face in extract_faces(data)]
    assert len(extract_faces(data, FaceSettings(min_face=min(sizes) * 0.9))) == 2
    assert extract_faces(data, FaceSettings(min_face=max(sizes) * 1.2)) == []


def test_averaging_before_opening_gives_the_same_people(people: Path) -> None:
    """The decoder's reduction is as good as a careful one of the decoded pixels."""
    data = photo_of(people, 400)
    photo = open_photo(data)
    averaged = np.asarray(cv2.resize(photo.pixels, (2000, 1500), interpolation=cv2.INTER_AREA), np.uint8)
    for a, b in zip(extract_faces(data), extract_faces(averaged), strict=True):
        assert float(a.descriptor @ b.descriptor) > 0.95
