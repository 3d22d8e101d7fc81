"""Sheets of near-duplicates: a row for each group, the largest copy first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.errors import PhotoError
from setnet.library.duplicates.copy_groups import DuplicateGroup
from setnet.library.pictures.drawing import INK, font
from setnet.library.pictures.sheet import FAINT, PAPER, card, fitted, gone_card, page, rounded, write_sheet
from setnet.library.pictures.small_pictures import thumbnail
from setnet.library.store.paths import shown
from setnet.wording import counted

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_GROUPS = 200  # on one sheet
_MOST_COPIES = 6  # of a group
_CELL, _GAP, _LINE = 240, 16, 24
_TITLE = "Near-duplicates"


def duplicate_sheet(groups: Sequence[DuplicateGroup], path: Path) -> None:
    """Write groups of copies as a sheet; the suffix decides: `.png`, `.jpg` or `.html`."""
    drawn = groups[:_MOST_GROUPS]
    copies = sum(len(group.photos) - 1 for group in groups)
    summary = f"{counted(len(groups), 'group')}, {counted(copies, 'photo')} besides the largest of each"
    if len(drawn) < len(groups):
        summary += f"; the first {len(drawn)} groups are shown"
    write_sheet(path, lambda: page(_TITLE, summary, _cards(drawn)), lambda: _picture(drawn, summary))


def _cards(groups: Sequence[DuplicateGroup]) -> Iterator[str]:
    for number, group in enumerate(groups, 1):
        yield f'<h2 style="grid-column:1/-1;margin:0">{number}. {_copies(group)}</h2>'
        for photo, pixels in _shown_copies(group):
            yield card(photo, _size(pixels))


def _picture(groups: Sequence[DuplicateGroup], summary: str) -> Image:
    from PIL import Image, ImageDraw

    columns = max((min(len(group.photos), _MOST_COPIES) for group in groups), default=1)
    row = _CELL + 3 * _LINE + _GAP
    width = max(640, _GAP + columns * (_CELL + _GAP))
    sheet = Image.new("RGB", (width, 5 * _LINE + len(groups) * row), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((_GAP, _GAP), _TITLE, font=font(30), fill=INK)
    draw.text((_GAP, _GAP + 2 * _LINE), fitted(summary, width - 2 * _GAP, 18), font=font(18), fill=FAINT)
    for number, group in enumerate(groups):
        top = 5 * _LINE + number * row
        draw.text((_GAP, top), f"{number + 1}. {_copies(group)}", font=font(19), fill=INK)
        for column, (photo, pixels) in enumerate(_shown_copies(group)):
            left = _GAP + column * (_CELL + _GAP)
            small = _small(photo)
            sheet.paste(small, (left, top + _LINE + 4), rounded(small.size, 8))
            below = f"{_size(pixels)}  {shown(photo.name)}"
            place = (left, top + _LINE + _CELL + 8)
            draw.text(place, fitted(below, _CELL, 15), font=font(15), fill=FAINT)
    return sheet


def _shown_copies(group: DuplicateGroup) -> list[tuple[Path, int]]:
    return list(zip(group.photos, group.pixels, strict=True))[:_MOST_COPIES]


def _small(path: Path) -> Image:
    from setnet.faces import open_photo

    try:
        return thumbnail(open_photo(path, enough=2 * _CELL).pixels, _CELL)
    except PhotoError:
        return gone_card((_CELL, _CELL * 3 // 4))


def _copies(group: DuplicateGroup) -> str:
    count = len(group.photos)
    return f"{count} copies" + (f", {_MOST_COPIES} shown" if count > _MOST_COPIES else "")


def _size(pixels: int) -> str:
    return f"{pixels / 1e6:.2f} megapixels"
