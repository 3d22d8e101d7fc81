"""Regions in the frame of the stored and of the upright picture."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from setnet.connect.face_regions import possible_frames, rotate, rotate_back, stored_size
from setnet.errors import InvalidInputError
from setnet.faces import Box, open_photo

sides = st.floats(0, 1, width=16)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_areas_turn_as_photos_do(orientation: int, tmp_path: object) -> None:
    pixels = np.zeros((40, 80, 3), np.uint8)
    pixels[10:20, 16:48] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(f"{tmp_path}/a.png", exif=exif)
    upright = open_photo(f"{tmp_path}/a.png").pixels[..., 0] > 128
    rows, columns = np.nonzero(upright.any(1))[0], np.nonzero(upright.any(0))[0]
    seen = (
        columns[0] / upright.shape[1],
        rows[0] / upright.shape[0],
        (columns[-1] + 1) / upright.shape[1],
        (rows[-1] + 1) / upright.shape[0],
    )
    assert rotate(Box(0.2, 0.25, 0.6, 0.5), orientation) == pytest.approx(seen)
    assert stored_size(upright.shape[1], upright.shape[0], orientation) == (80, 40)


@given(st.tuples(sides, sides, sides, sides), st.integers(1, 8))
def test_turning_back_undoes_turning(corners: tuple[float, ...], orientation: int) -> None:
    area = Box(*corners)
    assert rotate_back(rotate(area, orientation), orientation) == pytest.approx(area)


def test_the_sides_tell_the_frame_of_a_photo_on_its_side() -> None:
    assert possible_frames((4000, 3000), 3000, 4000, 6) == ("stored",)
    assert possible_frames((300, 400), 3000, 4000, 6) == ("upright",)
    assert possible_frames(None, 3000, 4000, 6) == ("stored", "upright")
    assert possible_frames((4000, 3000), 4000, 3000, 3) == ("stored", "upright")
    assert possible_frames((4000, 3000), 4000, 3000, 1) == ("upright",)


def test_regions_of_a_picture_of_another_shape_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"4000 x 3000.*cropped"):
        possible_frames((4000, 3000), 3000, 3000, 1)
