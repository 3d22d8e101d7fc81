from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from setnet.library.duplicates import AGREEMENT
from setnet.library.registration import Keypoints, agreement
from setnet.library.vlad import small_grey
from studies.alterations import altered

Pixels = NDArray[np.uint8]


@pytest.fixture(scope="module")
def cut_out(_people: None) -> Callable[[str, int], tuple[Pixels, Any]]:
    """Return the function that gives a person without background, so many pixels high, and the mask."""
    from setnet.cli.demo_album import standing

    def person(name: str, height: int) -> tuple[Pixels, Any]:
        found = standing(name)
        size = round(found.alpha.shape[1] * height / found.alpha.shape[0]), height
        alpha = Image.fromarray((found.alpha * 255).astype(np.uint8)).resize(size)
        return np.asarray(Image.fromarray(found.pixels).resize(size)), np.asarray(alpha)[..., None] / 255

    return person


def joined(photo: Pixels, person: tuple[Pixels, Any], left: int) -> Pixels:
    """Return the photo with a person put into it, standing on the lower edge."""
    pixels, alpha = person
    made = photo.astype(np.float64)
    part = made[-len(pixels) :, left : left + pixels.shape[1]]
    part[:] = part * (1 - alpha) + pixels * alpha
    return made.astype(np.uint8)


def compared(one: Pixels, other: Pixels) -> float:
    first, second = (Keypoints.of(small_grey(np.ascontiguousarray(photo))) for photo in (one, other))
    there, back = agreement(first, second), agreement(second, first)
    assert (there >= AGREEMENT) == (back >= AGREEMENT), "either way round"
    return there


def test_one_scene_with_different_people_in_it_is_two_photographs(
    selfie: Callable[[str], Pixels], cut_out: Callable[[str, int], tuple[Pixels, Any]]
) -> None:
    scene = selfie("P001")
    one, other = (joined(scene, cut_out(name, 260), 20) for name in ("P003", "P005"))
    assert compared(one, other) == 0
    assert compared(one, scene) == 0
    assert compared(one, altered(one, "cropped by 20 %", 5)) >= AGREEMENT


def test_one_person_cut_out_for_two_plain_backgrounds_makes_no_copies(
    cut_out: Callable[[str, int], tuple[Pixels, Any]],
) -> None:
    ramp = np.linspace(1.1, 0.7, 480)[:, None, None] * np.ones((1, 640, 1))
    blue, green = (np.asarray(ramp * colour, np.uint8) for colour in ((90, 110, 180), (80, 160, 90)))
    shared = cut_out("P001", 300)
    one = joined(joined(blue, shared, 60), cut_out("P003", 250), 400)
    other = joined(joined(green, shared, 430), cut_out("P005", 280), 80)
    assert compared(one, other) == 0
    assert compared(one, altered(one, "colours", 5)) >= AGREEMENT


def test_words_may_cover_a_band_and_not_more(selfie: Callable[[str], Pixels]) -> None:
    photo = selfie("P003")
    banner, poster = photo.copy(), photo.copy()
    banner[500:590] = 30
    poster[300:590] = 30
    assert compared(photo, banner) >= AGREEMENT
    assert compared(photo, poster) == 0
