"""Crops: the five points land on the template; the paper's box crop shows what it should."""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.faces.align import TEMPLATE, box_crop, five_point_crop, similarity_transform
from setnet.faces.pixels import resize

Pixels = npt.NDArray[np.uint8]


@given(
    angle=st.floats(-math.pi, math.pi),
    scale=st.floats(0.05, 20),
    x=st.floats(-500, 500),
    y=st.floats(-500, 500),
)
def test_a_similarity_is_found_exactly(angle: float, scale: float, x: float, y: float) -> None:
    turn = scale * np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    moved = TEMPLATE @ turn.T + [x, y]
    matrix = similarity_transform(moved, TEMPLATE)
    back = moved @ matrix[:, :2].T + matrix[:, 2]
    np.testing.assert_allclose(back, TEMPLATE, atol=1e-6)


def test_five_equal_points_do_not_divide_by_zero() -> None:
    assert np.isfinite(similarity_transform(np.ones((5, 2)), TEMPLATE)).all()


def spots(points: npt.NDArray[np.float64], shape: tuple[int, int], radius: float) -> Pixels:
    """An image with a soft white spot at each point."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    image = sum(np.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * radius**2)) for px, py in points)
    return np.repeat(np.clip(255 * np.asarray(image), 0, 255).astype(np.uint8)[..., None], 3, axis=2)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0, 9.0])
@pytest.mark.parametrize("degrees", [0, 25, -120])
def test_landmarks_land_on_the_template_at_every_scale(scale: float, degrees: float) -> None:
    angle = math.radians(degrees)
    turn = scale * np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    points = (TEMPLATE - 56) @ turn.T + 700
    crop = five_point_crop(spots(points, (1400, 1400), 2.5 * scale), points)
    assert crop.shape == (112, 112, 3)
    y, x = np.mgrid[:112, :112]
    for px, py in TEMPLATE:
        near = crop[..., 0] * (np.hypot(x - px, y - py) < 8.0)
        weight = near / near.sum()
        # Within a third of a pixel, also where the face was averaged down first.
        assert np.hypot((x * weight).sum() - px, (y * weight).sum() - py) < 0.34


def test_a_large_face_is_averaged_not_skipped() -> None:
    grain = np.repeat(np.random.default_rng(2).integers(0, 2, (1600, 1600, 1), np.uint8) * 255, 3, axis=2)
    inner = five_point_crop(grain, TEMPLATE * (1600 / 112))[10:100, 10:100].astype(float)
    assert inner.mean() == pytest.approx(127.5, abs=3)
    assert inner.std() < 20  # 127 in the photo; sampling single pixels would leave about 80


def test_a_face_outside_the_photo_gives_black_not_an_error() -> None:
    photo = np.full((50, 50, 3), 200, np.uint8)
    assert five_point_crop(photo, TEMPLATE * 30 + 5000).shape == (112, 112, 3)
    assert box_crop(photo, (900.0, 900.0, 990.0, 990.0)).shape == (224, 224, 3)


def test_box_crop_is_the_papers_extended_square() -> None:
    y, x = np.mgrid[:400, :600]
    photo = np.stack([x / 600 * 255, y / 400 * 255, 0 * x], axis=2).astype(np.uint8)
    box = (250.0, 120.0, 350.0, 260.0)  # 100 x 140: the short side extends to 130
    crop = box_crop(photo, box)
    assert crop.shape == (224, 224, 3)
    side = 130 * 255 / 600
    assert int(crop[112, -1, 0]) - int(crop[112, 0, 0]) == pytest.approx(side, abs=3)
    assert crop[112, 112, 0] == pytest.approx(300 * 255 / 600, abs=2)
    assert crop[112, 112, 1] == pytest.approx(190 * 255 / 400, abs=2)


def test_box_crop_repeats_the_edge_of_the_photo() -> None:
    photo = np.full((100, 100, 3), 77, np.uint8)
    assert (box_crop(photo, (-40.0, -40.0, 60.0, 60.0)) == 77).all()


def test_shrinking_averages_like_opencv_within_rounding() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (480, 640, 3)).astype(np.uint8)
    exact = cv2.resize(noise, (160, 120), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(resize(noise, 160, 120), exact)
    assert resize(noise, 37, 29).shape == (29, 37, 3)
    assert resize(noise, 37, 29).std() < 20
