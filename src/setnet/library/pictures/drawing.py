"""Draw faces on photos: sure matches in green with a label, guesses in yellow, others in grey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image

    from setnet.faces import Box

GREEN = (34, 197, 94)
YELLOW = (250, 204, 21)
GREY = (203, 207, 214)
INK = (17, 24, 39)


@dataclass(frozen=True, slots=True)
class Mark:
    """A face to draw; with a `label` it is drawn as a match, in another colour when it is not `sure`."""

    box: Box
    label: str | None = None
    sure: bool = True

    @property
    def colour(self) -> tuple[int, int, int]:
        """What its lines and its label are drawn with."""
        return GREY if self.label is None else GREEN if self.sure else YELLOW


@cache
def font(size: int) -> Any:
    """Return Pillow's own font, so that drawings look the same on every machine."""
    from PIL import ImageFont

    return ImageFont.load_default(size)


def draw_marks(image: Image, marks: Sequence[Mark], scale: float = 1.0) -> None:
    """Draw `marks` onto the image, which is the photo made smaller by `scale`."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(image)
    line = max(1, round(min(image.size) ** 0.5 / 9))
    for mark in sorted(marks, key=lambda m: m.label is not None):  # matches lie above the others
        corners = [c * scale for c in (mark.box.x0, mark.box.y0, mark.box.x1, mark.box.y1)]
        radius = (corners[2] - corners[0]) * 0.08
        if mark.label is None:
            draw.rounded_rectangle(corners, radius, outline=mark.colour, width=line)
            continue
        # A dark line around the bright one keeps it visible on grass and on white walls alike.
        around = [corners[0] - line, corners[1] - line, corners[2] + line, corners[3] + line]
        draw.rounded_rectangle(around, radius + line, outline=INK, width=line)
        draw.rounded_rectangle(corners, radius, outline=mark.colour, width=2 * line)
    taken: list[_Place] = []
    for mark in marks:
        if mark.label is not None:
            taken.append(_draw_label(image, draw, mark, scale, line, taken))


class _Place(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: _Place) -> float:
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, wide) * max(0.0, high)


def _draw_label(
    image: Image, draw: Any, mark: Mark, scale: float, line: int, taken: Sequence[_Place]
) -> _Place:
    label = mark.label or ""
    size = max(11, round(min(image.size) / 21))
    letters = font(size)
    left, top, right, bottom = draw.textbbox((0, 0), label, font=letters)
    width, height = right - left + size * 0.6, bottom - top + size * 0.5
    places = _places(mark.box, scale, line, width, height, image.size)
    # Below the face if there is room, else where it hides least of the labels already there.
    place = min(places, key=lambda p: sum(p.overlap(other) for other in taken))
    draw.rounded_rectangle(place, height * 0.25, fill=mark.colour)
    draw.text((place.left + size * 0.3 - left, place.top + size * 0.25 - top), label, font=letters, fill=INK)
    return place


def _places(
    box: Box, scale: float, line: int, width: float, height: float, size: tuple[int, int]
) -> list[_Place]:
    middle, step = (box.x0 + box.x1) / 2 * scale, height + line
    below, above = box.y1 * scale + 2 * line, box.y0 * scale - 2 * line - height
    tops = [below, above, above - step, below + step, above - 2 * step]
    inside = [top for top in tops if 0 <= top <= size[1] - height] or [max(0.0, size[1] - height)]
    left = min(max(middle - width / 2, 0), max(0.0, size[0] - width))
    return [_Place(left, top, left + width, top + height) for top in inside]
