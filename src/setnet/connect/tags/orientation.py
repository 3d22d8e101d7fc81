"""Which picture a region refers to: the one stored in the file, or the upright one that people see.

Programs disagree about photos with an EXIF orientation. Most mean the stored picture, and
`AppliedToDimensions` then has its sides.
"""

from __future__ import annotations

from typing import Literal

from setnet.errors import InvalidInputError
from setnet.faces import Box

Frame = Literal["stored", "upright"]
_FIRST_ON_ITS_SIDE = 5  # EXIF orientations from here on swap width and height
_BACK = {6: 8, 8: 6}  # all others undo themselves
_SAME_SHAPE = 0.03  # relative difference of width : height; small previews are rounded


def turned(area: Box, orientation: int) -> Box:
    """Return where an area of the stored picture is in the upright one, both in fractions of the sides.

    >>> turned(Box(0.0, 0.0, 0.25, 0.5), 6)
    Box(x0=0.5, y0=0.0, x1=1.0, y1=0.25)
    """
    x0, y0, x1, y1 = area
    if orientation >= _FIRST_ON_ITS_SIDE:
        x0, y0, x1, y1 = y0, x0, y1, x1
    if orientation in (2, 3, 6, 7):
        x0, x1 = 1 - x1, 1 - x0
    if orientation in (3, 4, 7, 8):
        y0, y1 = 1 - y1, 1 - y0
    return Box(x0, y0, x1, y1)


def turned_back(area: Box, orientation: int) -> Box:
    """Return where an area of the upright picture is in the stored one.

    >>> turned_back(turned(Box(0.0, 0.0, 0.25, 0.5), 8), 8)
    Box(x0=0.0, y0=0.0, x1=0.25, y1=0.5)
    """
    return turned(area, _BACK.get(orientation, orientation))


def stored_size(width: int, height: int, orientation: int) -> tuple[int, int]:
    """Return width and height of the stored picture, by those of the upright one."""
    return (height, width) if orientation >= _FIRST_ON_ITS_SIDE else (width, height)


def frames_of(
    made_for: tuple[float, float] | None, width: int, height: int, orientation: int
) -> tuple[Frame, ...]:
    """Return what regions may refer to, the more likely first, by the sides they were made for.

    One frame alone where there is no doubt. `width` and `height` are the upright photo's. An error says that
    the regions were made for a picture of another shape: the photo was cropped since.
    """
    both: tuple[Frame, ...] = ("upright",) if orientation == 1 else ("stored", "upright")
    if made_for is None:
        return both
    shapes: dict[Frame, tuple[int, int]] = {
        "stored": stored_size(width, height, orientation),
        "upright": (width, height),
    }
    fitting = tuple(frame for frame in both if _same_shape(made_for, shapes[frame]))
    if not fitting:
        w, h = made_for
        raise InvalidInputError(
            f"the regions are for a picture of {w:g} x {h:g}, and the photo has {width} x {height}: it was "
            "cropped since, or they are another's"
        )
    return fitting


def _same_shape(a: tuple[float, float], b: tuple[int, int]) -> bool:
    return abs(a[0] * b[1] - a[1] * b[0]) <= _SAME_SHAPE * a[1] * b[0]
