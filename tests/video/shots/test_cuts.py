"""Cuts in pictures that are computed: cuts, fades and dissolves are found, movement is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.video.frames import Frame
from setnet.video.shots import find_cuts, signature

APART = 0.25


def scene(seed: int, rows: int = 72, columns: int = 400) -> NDArray[np.float32]:
    """Return a smooth picture of coloured patches."""
    patches = np.random.default_rng(seed).uniform(0, 255, (4, 20, 3))
    return patches.repeat(rows // 4, 0).repeat(columns // 20, 1).astype(np.float32)


def panned(seed: int, frames: int, speed: int = 0) -> list[NDArray[np.float32]]:
    picture = scene(seed)
    return [picture[:, n * speed : n * speed + 128] for n in range(frames)]


def found(frames: Sequence[NDArray[np.float32]]) -> list[tuple[float, float]]:
    signatures = [
        signature(Frame(n * APART, np.clip(picture, 0, 255).astype(np.uint8)))
        for n, picture in enumerate(frames)
    ]
    return [(cut.end, cut.begin) for cut in find_cuts(signatures)]


def test_a_cut_is_found_at_the_first_frame_after_it() -> None:
    assert found([*panned(1, 8), *panned(2, 8)]) == [(1.75, 2.0)]


@pytest.mark.parametrize("speed", [0, 1, 3])
def test_a_camera_that_pans_makes_no_cut(speed: int) -> None:
    assert found(panned(3, 24, speed)) == []


def test_a_fade_through_black_is_one_cut() -> None:
    a, b = panned(4, 8), panned(5, 8)
    down = [a[-1] * s for s in (0.6, 0.2, 0.0)]
    up = [b[0] * s for s in (0.1, 0.5)]
    ((end, begin),) = found([*a, *down, *up, *b])
    assert 1.75 <= end <= begin <= 3.5


def test_a_dissolve_is_one_cut() -> None:
    a, b = panned(6, 8), panned(7, 8)
    mixed = [(1 - s) * a[-1] + s * b[0] for s in (0.2, 0.4, 0.6, 0.8)]
    ((end, begin),) = found([*a, *mixed, *b])
    assert (end, begin) == (1.75, 3.0)


def test_a_flash_of_light_does_not_leave_tiny_shots() -> None:
    frames = panned(8, 16)
    frames[7] = np.clip(frames[7] + 150, 0, 255)
    times = [0.0, *(begin for _, begin in found(frames)), 4.0]
    assert min(np.diff(times)) >= 0.25


def test_one_look_has_no_limits() -> None:
    assert found(panned(9, 1)) == []
