"""Face regions as a program stored them: names with rectangles, in fractions of a picture's sides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

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


def number(text: str) -> float:
    """Return a number that was stored as text; NaN for what is none.

    >>> number(" 0.25 "), number("wide")
    (0.25, nan)
    """
    try:
        return float(text)
    except ValueError:
        return math.nan
