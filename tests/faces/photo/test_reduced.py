"""JPEGs decoded at a part of their size: the same photo, smaller, with the same limits and errors."""

from __future__ import annotations

import io
from datetime import datetime

import cv2
import numpy as np
import pytest
from PIL import Image

from setnet.errors import PhotoError
from setnet.faces import open_photo

TURNS = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def scene(width: int = 640, height: int = 432) -> Image.Image:
    """Colours that change smoothly, and differ in all corners."""
    y, x = np.mgrid[0:height, 0:width]
    parts = [255 * x / width, 255 * y / height, 127 * (1 + np.sin(x / 40) * np.cos(y / 30))]
    return Image.fromarray(np.stack(parts, axis=-1).astype(np.uint8))


def jpeg(image: Image.Image, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=95, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("enough", "reduction"), [(640, 1), (321, 1), (320, 2), (161, 2), (160, 4), (80, 8), (1, 8), (5000, 1)]
)
def test_as_few_pixels_are_decoded_as_are_enough(enough: int, reduction: int) -> None:
    photo = open_photo(jpeg(scene()), enough=enough)
    assert photo.reduction == reduction
    assert (photo.width, photo.height) == (640, 432)
    assert photo.pixels.shape == (432 // reduction, 640 // reduction, 3)


@pytest.mark.parametrize("turn", TURNS)
def test_a_reduced_photo_is_the_upright_one_made_smaller(turn: int) -> None:
    undo = TURNS[turn]
    stored = scene() if undo is None else scene().transpose(undo)
    exif = Image.Exif()
    exif[0x0112] = turn
    photo = open_photo(jpeg(stored, exif=exif), enough=300)
    assert (photo.reduction, photo.width, photo.height) == (2, 640, 432)
    averaged = cv2.resize(photo.in_full().pixels, (320, 216), interpolation=cv2.INTER_AREA)
    assert np.abs(photo.pixels.astype(int) - averaged.astype(int)).max() <= 6


def test_in_full_is_the_photo_opened_plainly() -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2019:07:21 14:03:59"
    data = jpeg(scene(), exif=exif)
    reduced, plain = open_photo(data, enough=100), open_photo(data)
    full = reduced.in_full()
    np.testing.assert_array_equal(full.pixels, plain.pixels)
    assert (full.reduction, plain.reduction) == (1, 1)
    assert reduced.taken == full.taken == datetime(2019, 7, 21, 14, 3, 59)
    assert full.in_full() is full
    assert plain.in_full() is plain


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_other_colours_are_reduced_to_rgb(mode: str) -> None:
    data = jpeg(scene().convert(mode))
    photo = open_photo(data, enough=100)
    assert photo.reduction == 4
    averaged = cv2.resize(photo.in_full().pixels, (160, 108), interpolation=cv2.INTER_AREA)
    assert np.abs(photo.pixels.astype(int) - averaged.astype(int)).max() <= 8


@pytest.mark.parametrize(
    ("kind", "mode"), [("PNG", "RGB"), ("PNG", "I;16"), ("TIFF", "RGB"), ("WEBP", "RGB")]
)
def test_formats_that_cannot_be_reduced_come_in_full(kind: str, mode: str) -> None:
    image = scene() if mode == "RGB" else Image.fromarray(np.asarray(scene().convert("L"), np.uint16) * 257)
    file = io.BytesIO()
    image.save(file, kind)
    photo = open_photo(file.getvalue(), enough=50)
    assert (photo.reduction, photo.pixels.shape) == (1, (432, 640, 3))


@pytest.mark.parametrize("size", [(1, 1), (7, 3), (9, 5000), (3001, 2)])
def test_odd_and_narrow_photos_keep_their_size(size: tuple[int, int]) -> None:
    photo = open_photo(jpeg(scene(*size)), enough=600)
    assert (photo.width, photo.height) == size
    columns, rows = (-(-side // photo.reduction) for side in size)
    assert photo.pixels.shape == (rows, columns, 3)
    assert max(photo.pixels.shape) >= min(600, max(size))


def test_a_photo_over_the_limit_is_refused_though_its_reduced_pixels_would_be_few() -> None:
    with pytest.raises(PhotoError, match="640 x 432 pixels are more than the limit"):
        open_photo(jpeg(scene()), enough=40, max_pixels=100_000)


def test_a_jpeg_cut_short_is_read_as_far_at_any_size() -> None:
    data = jpeg(scene())
    notes = {open_photo(data[: len(data) // 2], enough=enough).note for enough in (None, 320, 80)}
    assert all("cut short: the last " in str(note) for note in notes)
