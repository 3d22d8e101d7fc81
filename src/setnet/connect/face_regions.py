"""Face regions as a program stored them: names with rectangles, in fractions of a picture's sides.

A region refers to the picture stored in the file, or to the upright one that people see. Programs disagree
about photos with an EXIF orientation. Most mean the stored picture, and `AppliedToDimensions` then has its
sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from setnet.errors import InvalidInputError
from setnet.faces import Box


class FaceRegion(NamedTuple):
    """A tagged face: what it is called ("" for a face without a name), and its rectangle in fractions."""

    name: str
    area: Box


@dataclass(slots=True)
class RegionList:
    """The face regions that one program wrote into one file.

    Attributes
    ----------
    form
        How they were written: `mwg`, `microsoft`, `acdsee` or `picasa`.
    size
        Width and height of the picture they were made for, where that is stored.
    problems
        What could not be read of them, a sentence each.
    """

    form: str
    regions: list[FaceRegion] = field(default_factory=list)
    size: tuple[float, float] | None = None
    problems: list[str] = field(default_factory=list)

    def add(self, name: str, *corners: float) -> None:
        """Add a region by x0, y0, x1, y1; one that is no rectangle in the picture is a problem."""
        try:
            self.regions.append(FaceRegion(name, area_in_picture(*corners)))
        except InvalidInputError as error:
            self.problems.append(f"the region of {name!r} {error}")


def area_in_picture(x0: float, y0: float, x1: float, y1: float) -> Box:
    """Return the part of a rectangle that is inside the picture, whose sides are 1; none is an error.

    >>> area_in_picture(-0.5, 0.25, 0.5, 0.75)
    Box(x0=0.0, y0=0.25, x1=0.5, y1=0.75)
    """
    if not all(map(math.isfinite, (x0, y0, x1, y1))):
        raise InvalidInputError("is no rectangle: its numbers are missing or not finite")
    area = Box(max(x0, 0.0), max(y0, 0.0), min(x1, 1.0), min(y1, 1.0))
    if area.width <= 0 or area.height <= 0:
        raise InvalidInputError(f"lies outside the picture, or is empty: {x0:g}, {y0:g} to {x1:g}, {y1:g}")
    return area


def parse_number(text: str) -> float:
    """Return a number that was stored as text; NaN for what is none.

    >>> parse_number(" 0.25 "), parse_number("wide")
    (0.25, nan)
    """
    try:
        return float(text)
    except ValueError:
        return math.nan


Frame = Literal["stored", "upright"]
_FIRST_ON_ITS_SIDE = 5  # EXIF orientations from here on swap width and height
_BACK = {6: 8, 8: 6}  # all others undo themselves
_SAME_SHAPE = 0.03  # relative difference of width : height; small previews are rounded


def rotate(area: Box, orientation: int) -> Box:
    """Return where an area of the stored picture is in the upright one, both in fractions of the sides.

    >>> rotate(Box(0.0, 0.0, 0.25, 0.5), 6)
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


def rotate_back(area: Box, orientation: int) -> Box:
    """Return where an area of the upright picture is in the stored one.

    >>> rotate_back(rotate(Box(0.0, 0.0, 0.25, 0.5), 8), 8)
    Box(x0=0.0, y0=0.0, x1=0.25, y1=0.5)
    """
    return rotate(area, _BACK.get(orientation, orientation))


def stored_size(width: int, height: int, orientation: int) -> tuple[int, int]:
    """Return width and height of the stored picture, by those of the upright one."""
    return (height, width) if orientation >= _FIRST_ON_ITS_SIDE else (width, height)


def possible_frames(
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
