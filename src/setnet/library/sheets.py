"""Sheets of photos, near-duplicates or groups: one picture, or one page that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.durable import replace_file
from setnet.errors import InvalidInputError, PhotoError, StorageError
from setnet.faces import Box
from setnet.library.answer import Answer
from setnet.library.duplicates import DuplicateGroup
from setnet.library.groups import Group, GroupFace
from setnet.library.paths import display_path
from setnet.library.photos import PhotoHit
from setnet.library.pictures import GREY, INK, Mark, draw_marks, font, jpeg, open_picture, thumbnail
from setnet.wording import pluralise

if TYPE_CHECKING:
    from PIL.Image import Image

    from setnet.faces import Photo
    from setnet.library.library import Library

_PAPER, _FAINT = (250, 250, 249), (107, 114, 128)
_PAGES = (".html", ".htm")
_GAP, _HEADER, _HEADING, _CAPTION = 18, 132, 34, 58  # pixels
_LARGEST = 640  # pixels of a photo on a page
_GONE = "not there any more"


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """A photo on a sheet; `open` raises a `PhotoError` where it is gone."""

    open: Callable[[], Photo]
    caption: str = ""
    name: str = ""
    path: Path | None = None
    marks: Sequence[Mark] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Cards in sections, each under its title.

    Attributes
    ----------
    cell, columns
        In a picture, the largest width and height of a photo, and how many are beside each other.
    portraits
        Names and small pictures of people for the head of the sheet.
    """

    title: str
    summary: str
    sections: Sequence[tuple[str, Sequence[Card]]]
    cell: tuple[int, int]
    columns: int
    portraits: Sequence[tuple[str, bytes]] = ()

    def write(self, path: Path) -> None:
        """Write the sheet as a page or as a picture; the suffix decides."""
        check_sheet_path(path)
        suffix = path.suffix.lower()
        try:
            if suffix in _PAGES:
                content = self.page().encode()
            else:
                self.picture().save(drawn := io.BytesIO(), "PNG" if suffix == ".png" else "JPEG")
                content = drawn.getvalue()
            replace_file(path, content)  # faces and names are for the owner's eyes
        except OSError as error:
            raise StorageError(f"cannot write {display_path(path)}: {error.strerror or error}") from error

    def page(self) -> str:
        """Return the sheet as HTML."""
        template = files("setnet.library").joinpath("contact_sheet.html").read_text(encoding="utf-8")
        portraits = (
            f'<img src="{_data_address(picture)}" alt="{html.escape(name)}" title="{html.escape(name)}">'
            for name, picture in self.portraits
        )
        parts = {
            "title": html.escape(self.title),
            "faces": "".join(portraits),
            "summary": html.escape(self.summary),
            "width": str(round(0.8 * self.cell[0])),
            "cards": "\n".join(self._cards()),
        }
        return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], template)

    def _cards(self) -> Iterator[str]:
        for title, cards in self.sections:
            if title:
                yield f"<h2>{html.escape(title)}</h2>"
            yield from map(_html_card, cards)

    def picture(self) -> Image:
        """Return the sheet as a picture."""
        from PIL import Image, ImageDraw

        (wide, high), columns = self.cell, self.columns
        has_captions = any(card.caption for _, cards in self.sections for card in cards)
        step = high + _GAP + (_CAPTION if has_captions else 0)
        heights = [_HEADING * bool(title) - -len(cards) // columns * step for title, cards in self.sections]
        width = max(_LARGEST, _GAP + columns * (wide + _GAP))
        sheet = Image.new("RGB", (width, _HEADER + sum(heights) + _GAP), _PAPER)
        draw = ImageDraw.Draw(sheet)
        left = _GAP
        for _, picture in self.portraits:
            face = Image.open(io.BytesIO(picture)).convert("RGB").resize((96, 96))
            sheet.paste(face, (left, _GAP), _rounded_mask(face.size, 48))
            left += 96 + 10
        left += 8 * bool(self.portraits)
        for below, text, size, colour in ((14, self.title, 30, INK), (56, self.summary, 19, _FAINT)):
            fitting = _fit_text(text, width - left - _GAP, size)
            draw.text((left, _GAP + below), fitting, font=font(size), fill=colour)
        top = _HEADER
        for (title, cards), height in zip(self.sections, heights, strict=True):
            draw.text((_GAP, top), title, font=font(19), fill=INK)
            for number, card in enumerate(cards):
                x = _GAP + number % columns * (wide + _GAP)
                y = top + _HEADING * bool(title) + number // columns * step
                drawn = draw_card(card, self.cell)
                place = (x + (wide - drawn.width) // 2, y + high - drawn.height)
                sheet.paste(drawn, place, _rounded_mask(drawn.size, 8))
                draw.text((x, y + high + 6), _fit_text(card.caption, wide, 19), font=font(19), fill=INK)
                draw.text((x, y + high + 31), _fit_text(card.name, wide, 16), font=font(16), fill=_FAINT)
            top += height
        return sheet


def check_sheet_path(path: Path) -> None:
    """Raise for a file that no sheet can be written to because of its suffix."""
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg", *_PAGES):
        raise InvalidInputError(f"a sheet is a .png, .jpg or .html file, not {display_path(path)!r}")


def draw_card(card: Card, size: tuple[int, int]) -> Image:
    """Return a card's photo in `size`, faces drawn; a photo that cannot be opened leaves a grey card."""
    from PIL import Image, ImageDraw

    try:
        opened = card.open()
    except PhotoError:
        grey = Image.new("RGB", size, GREY)
        ImageDraw.Draw(grey).text((20, 20), _GONE, font=font(20), fill=INK)
        return grey
    ratio = min(size[0] / opened.width, size[1] / opened.height, 1.0)  # a small photo keeps its size
    width, height = max(1, round(opened.width * ratio)), max(1, round(opened.height * ratio))
    # Drawn at twice the size and made smaller: smooth lines without a drawing library.
    drawn = thumbnail(opened.pixels, 2 * max(width, height)).resize((2 * width, 2 * height))
    draw_marks(drawn, card.marks, drawn.width / opened.width)
    return drawn.resize((width, height), Image.Resampling.LANCZOS)


def _html_card(card: Card) -> str:
    """Return a card as HTML, with a link to its file."""
    name = html.escape(card.name)
    try:
        opened = card.open()
        image = jpeg(thumbnail(opened.pixels, _LARGEST), 82)
        picture = f'<img src="{_data_address(image)}" alt="{name}" loading="lazy">'
        picture += "".join(_html_mark(mark, opened) for mark in card.marks)
    except PhotoError:
        picture = f'<p class="gone">{_GONE}</p>'
    can_link = card.path is not None and display_path(card.path) == str(card.path)
    link = f' href="{html.escape(card.path.absolute().as_uri())}"' if can_link and card.path else ""
    text = f"<figcaption><b>{html.escape(card.caption)}</b><span>{name}</span></figcaption>"
    return f"<figure><a{link}>{picture}</a>{text if card.caption else ''}</figure>"


def _html_mark(mark: Mark, photo: Photo) -> str:
    width, height = max(1, photo.width), max(1, photo.height)
    box = mark.box
    place = (
        f"left:{box.x0 / width:.2%};top:{box.y0 / height:.2%};"
        f"width:{(box.x1 - box.x0) / width:.2%};height:{(box.y1 - box.y0) / height:.2%}"
    )
    if mark.label is None:
        return f'<i style="{place}"></i>'
    centre = (box.x0 + box.x1) / 2 / width
    side = "left" if centre < 0.18 else "right" if centre > 0.82 else "middle"
    lines = f"{'above' if box.y1 / height > 0.88 else 'below'} {side}"
    kind = "match" if mark.sure else "match maybe"
    return f'<i class="{kind}" style="{place}"><em class="{lines}">{html.escape(mark.label)}</em></i>'


def _data_address(picture: bytes) -> str:
    """Return a JPEG as an address that holds it."""
    return "data:image/jpeg;base64," + base64.b64encode(picture).decode("ascii")


def _fit_text(text: str, width: int, size: int) -> str:
    """Return a text cut so that it fits a width in letters of a size."""
    letters = font(size)
    if letters.getlength(text) <= width:
        return text
    while text and letters.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


def _rounded_mask(size: tuple[int, int], radius: int) -> Image:
    """Return a mask with round corners."""
    from PIL import Image, ImageDraw

    mask = Image.new("L", (size[0] * 2, size[1] * 2), 0)
    ImageDraw.Draw(mask).rounded_rectangle([0, 0, size[0] * 2 - 1, size[1] * 2 - 1], radius * 2, fill=255)
    return mask.resize(size, Image.Resampling.LANCZOS)


def contact_sheet(answer: Answer, path: Path, title: str | None = None) -> None:
    """Write the answer as a contact sheet; the suffix decides: `.png`, `.jpg` or `.html`."""
    hits = answer.hits
    columns = min((5, 4, 3), key=lambda n: -len(hits) % n)  # the fewest empty places, then the widest
    cards = [hit_card(number, hit, answer) for number, hit in enumerate(hits, 1)]
    portraits = [(person.name, person.picture) for person in answer.people if person.picture is not None]
    Sheet(title or _title(answer), _summary(answer), [("", cards)], (360, 270), columns, portraits).write(
        path
    )


def hit_card(number: int, hit: PhotoHit, answer: Answer) -> Card:
    """Return the card of a hit, with its faces marked."""
    matches = {m.face: m for m in hit.matches}
    best = hit.photo.best  # of a shot, whose picture at this time is drawn
    boxes = [f.box if best is None else Box(*f.corners_at(best)) for f in hit.photo.faces]
    marks = [
        Mark(box)
        if (match := matches.get(face.ordinal)) is None
        else Mark(box, f"{match.label} {match.similarity:.2f}", match.sure)
        for face, box in zip(hit.photo.faces, boxes, strict=True)
    ]
    folder, name = os.path.split(hit.photo.display_name)
    place = os.path.join(os.path.basename(folder), name)
    return Card(lambda: open_picture(hit.photo), f"{number}.  {_result(hit, answer)}", place, hit.path, marks)


def _result(hit: PhotoHit, answer: Answer) -> str:
    sure, maybe = len(hit.sure_people), len(hit.people) - len(hit.sure_people)
    found = f"{sure} and maybe {maybe}" if sure and maybe else f"maybe {maybe}" if maybe else str(sure)
    alike = len(hit.copies) + len(hit.others)
    more = f" · and {alike} alike" if alike else ""
    return f"{found} of {len(answer.people)} · score {hit.score:.2f}{more}"


def _title(answer: Answer) -> str:
    title = " + ".join(p.name for p in answer.people)
    return title + (f", without {', '.join(p.name for p in answer.without)}" if answer.without else "")


def _summary(answer: Answer) -> str:
    milliseconds = answer.seconds["search"] * 1000
    photos = pluralise(answer.searched, "photo")
    found = f"the best {len(answer.hits)} of {photos}, found in {milliseconds:.1f} ms"
    return f"{found}; no sure match of {', '.join(answer.unsure)}" if answer.unsure else found


_MAX_GROUPS, _MAX_COPIES = 200, 6  # on one sheet, and of a group
_COPY, _FACE, _MAX_FACES = 240, 96, 10


def duplicate_sheet(groups: Sequence[DuplicateGroup], path: Path) -> None:
    """Write groups of copies as a sheet; the suffix decides: `.png`, `.jpg` or `.html`."""
    drawn = groups[:_MAX_GROUPS]
    copies = sum(len(group.photos) - 1 for group in groups)
    summary = f"{pluralise(len(groups), 'group')}, {pluralise(copies, 'photo')} besides the largest of each"
    if len(drawn) < len(groups):
        summary += f"; the first {len(drawn)} groups are shown"
    sections = []
    for number, group in enumerate(drawn, 1):
        pairs = list(zip(group.photos, group.pixels, strict=True))
        more = f", {_MAX_COPIES} shown" if len(pairs) > _MAX_COPIES else ""
        cards = [_copy_card(photo, pixels) for photo, pixels in pairs[:_MAX_COPIES]]
        sections.append((f"{number}. {len(pairs)} copies{more}", cards))
    columns = max((len(cards) for _, cards in sections), default=1)
    Sheet("Near-duplicates", summary, sections, (_COPY, _COPY), columns).write(path)


def _copy_card(path: Path, pixels: int) -> Card:
    from setnet.faces import open_photo

    size = f"{pixels / 1e6:.2f} megapixels"
    return Card(lambda: open_photo(path, enough=_LARGEST), size, display_path(path.name), path)


def group_sheet(library: Library, groups: Sequence[Group], path: Path) -> None:
    """Draw some faces of each group; the suffix decides: `.png`, `.jpg` or `.html`."""
    sections = []
    for group in groups[:_MAX_GROUPS]:
        hidden = ", hidden" if group.hidden else ""
        facts = f"{pluralise(group.faces, 'face')}, {pluralise(group.photos, 'photo')}{hidden}"
        sections.append((f"{group.id}  {group.name or ''}  {facts}", _face_cards(library, group)))
    summary = pluralise(len(groups), "group")
    Sheet("Who is this?", summary, sections, (_FACE, _FACE), _MAX_FACES).write(path)


def _face_cards(library: Library, group: Group) -> list[Card]:
    """Return the cards of a group's faces, evenly chosen over its time."""
    from setnet.faces import open_photo

    def card(face: GroupFace) -> Card:
        photos = library.photos
        return Card(lambda: open_photo(photos.face_thumbnail(face.photo_id, face.face, _FACE)))

    members = library.groups.members(group.id)
    return [card(face) for face in members[:: max(1, -(-len(members) // _MAX_FACES))]]
