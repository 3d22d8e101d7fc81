"""Sheets of photos, near-duplicates or groups: one picture, or one page that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.durable import replace_file
from setnet.errors import InvalidInputError, PhotoError, StorageError
from setnet.faces import Box
from setnet.library.answer import Answer
from setnet.library.duplicates import DuplicateGroup
from setnet.library.groups import Group
from setnet.library.paths import display_path
from setnet.library.photos import PhotoHit
from setnet.library.pictures import GREY, INK, Mark, draw_marks, font, jpeg, open_picture, thumbnail
from setnet.wording import pluralise

if TYPE_CHECKING:
    from PIL.Image import Image

    from setnet.library.library import Library

PAPER = (250, 250, 249)
FAINT = (107, 114, 128)
_PAGES = (".html", ".htm")


def check_sheet_path(path: Path) -> None:
    """Raise for a file that no sheet can be written to because of its suffix."""
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg", *_PAGES):
        raise InvalidInputError(f"a sheet is a .png, .jpg or .html file, not {display_path(path)!r}")


def write_sheet(path: Path, page: Callable[[], str], picture: Callable[[], Image]) -> None:
    """Write a sheet as a page or as a picture; the suffix decides."""
    check_sheet_path(path)
    try:
        if path.suffix.lower() in _PAGES:
            content = page().encode()
        else:
            picture().save(drawn := io.BytesIO(), "PNG" if path.suffix.lower() == ".png" else "JPEG")
            content = drawn.getvalue()
        replace_file(path, content)  # faces and names are for the owner's eyes
    except OSError as error:
        raise StorageError(f"cannot write {display_path(path)}: {error.strerror or error}") from error


def html_page(title: str, summary: str, cards: Iterable[str], faces: str = "") -> str:
    """Return a page of cards; `faces` and the cards are HTML, the texts are not."""
    template = files("setnet.library").joinpath("contact_sheet.html").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(title),
        "faces": faces,
        "summary": html.escape(summary),
        "cards": "\n".join(cards),
    }
    return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], template)


def html_card(
    path: Path, caption: str, above: str = "", pixels: Callable[[], NDArray[np.uint8]] | None = None
) -> str:
    """Return a photo as HTML, with a link to its file, a caption and what lies `above` it.

    `pixels` gives those to show where the file is no photo.
    """
    from setnet.faces import open_photo

    name = html.escape(display_path(path.name))
    try:
        image = thumbnail(open_photo(path).pixels if pixels is None else pixels(), 640)
        picture = f'<img src="{data_address(jpeg(image, 82))}" alt="{name}" loading="lazy">'
    except PhotoError:
        picture = '<p class="gone">not there any more</p>'
    link = html.escape(path.absolute().as_uri()) if display_path(path) == str(path) else "#"
    return (
        f'<figure><a href="{link}">{picture}{above}</a><figcaption><b>'
        f"{html.escape(caption)}</b><span>{name}</span></figcaption></figure>"
    )


def gone_card(size: tuple[int, int]) -> Image:
    """Return what is drawn for a photo that cannot be opened."""
    from PIL import Image, ImageDraw

    card = Image.new("RGB", size, GREY)
    ImageDraw.Draw(card).text((20, 20), "not there any more", font=font(20), fill=INK)
    return card


def data_address(picture: bytes) -> str:
    """Return a JPEG as an address that holds it."""
    return "data:image/jpeg;base64," + base64.b64encode(picture).decode("ascii")


def fit_text(text: str, width: int, size: int) -> str:
    """Return a text cut so that it fits a width in letters of a size."""
    letters = font(size)
    if letters.getlength(text) <= width:
        return text
    while text and letters.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


def rounded_mask(size: tuple[int, int], radius: int) -> Image:
    """Return a mask with round corners."""
    from PIL import Image, ImageDraw

    mask = Image.new("L", (size[0] * 2, size[1] * 2), 0)
    ImageDraw.Draw(mask).rounded_rectangle([0, 0, size[0] * 2 - 1, size[1] * 2 - 1], radius * 2, fill=255)
    return mask.resize(size, Image.Resampling.LANCZOS)


_CONTACT_CELL = 360
_CONTACT_CAPTION = 58
_CONTACT_GAP = 18
_CONTACT_HEADER = 132


def contact_sheet(answer: Answer, path: Path, title: str | None = None) -> None:
    """Write the answer as a contact sheet; the suffix decides: `.png`, `.jpg` or `.html`."""
    name = title or _title(answer)
    write_sheet(path, lambda: _contact_page(answer, name), lambda: _contact_picture(answer, name))


def _contact_picture(answer: Answer, title: str) -> Image:
    from PIL import Image, ImageDraw

    hits = answer.hits
    columns = min((5, 4, 3), key=lambda n: -len(hits) % n)  # the fewest empty places, then the widest
    rows = max(1, -(-len(hits) // columns))
    width = _CONTACT_GAP + columns * (_CONTACT_CELL + _CONTACT_GAP)
    height = (
        _CONTACT_HEADER + rows * (_CONTACT_CELL * 3 // 4 + _CONTACT_CAPTION + _CONTACT_GAP) + _CONTACT_GAP
    )
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    x = _CONTACT_GAP
    for person in answer.people:
        if person.picture is not None:
            face = Image.open(io.BytesIO(person.picture)).convert("RGB").resize((96, 96))
            sheet.paste(face, (x, _CONTACT_GAP), rounded_mask(face.size, 48))
            x += 96 + 10
    x += 8 if x > _CONTACT_GAP else 0
    draw.text((x, _CONTACT_GAP + 14), fit_text(title, width - x - _CONTACT_GAP, 30), font=font(30), fill=INK)
    draw.text(
        (x, _CONTACT_GAP + 56),
        fit_text(_summary(answer), width - x - _CONTACT_GAP, 19),
        font=font(19),
        fill=FAINT,
    )
    for number, hit in enumerate(hits):
        x = _CONTACT_GAP + number % columns * (_CONTACT_CELL + _CONTACT_GAP)
        y = _CONTACT_HEADER + number // columns * (_CONTACT_CELL * 3 // 4 + _CONTACT_CAPTION + _CONTACT_GAP)
        picture = _draw_hit(hit, (_CONTACT_CELL, _CONTACT_CELL * 3 // 4))
        left = x + (_CONTACT_CELL - picture.width) // 2
        sheet.paste(
            picture, (left, y + _CONTACT_CELL * 3 // 4 - picture.height), rounded_mask(picture.size, 8)
        )
        below = y + _CONTACT_CELL * 3 // 4 + 6
        draw.text((x, below), f"{number + 1}.  {_verdict(hit, answer)}", font=font(19), fill=INK)
        draw.text((x, below + 25), fit_text(_place(hit), _CONTACT_CELL, 16), font=font(16), fill=FAINT)
    return sheet


def _draw_hit(hit: PhotoHit, size: tuple[int, int]) -> Image:
    """Return the hit's photo in `size`, faces drawn; a photo that cannot be opened leaves a grey card."""
    from PIL import Image

    try:
        opened = open_picture(hit.photo)
    except PhotoError:
        return gone_card(size)
    ratio = min(size[0] / opened.width, size[1] / opened.height, 1.0)  # a small photo keeps its size
    shown = max(1, round(opened.width * ratio)), max(1, round(opened.height * ratio))
    # Drawn at twice the size and made smaller: smooth lines without a drawing library.
    drawn = thumbnail(opened.pixels, 2 * max(shown)).resize((2 * shown[0], 2 * shown[1]))
    draw_marks(drawn, _marks(hit), drawn.width / opened.width)
    return drawn.resize(shown, Image.Resampling.LANCZOS)


def _marks(hit: PhotoHit) -> list[Mark]:
    matches = {m.face: m for m in hit.matches}
    best = hit.photo.best  # of a shot, whose picture at this time is drawn
    places = [f.box if best is None else Box(*f.corners_at(best)) for f in hit.photo.faces]
    return [
        Mark(box)
        if (match := matches.get(face.ordinal)) is None
        else Mark(box, f"{match.label} {match.similarity:.2f}", match.sure)
        for face, box in zip(hit.photo.faces, places, strict=True)
    ]


def _place(hit: PhotoHit) -> str:
    """Return the name of a photo after that of its folder."""
    folder, name = os.path.split(hit.photo.shown)
    return os.path.join(os.path.basename(folder), name)


def _verdict(hit: PhotoHit, answer: Answer) -> str:
    sure, maybe = len(hit.sure_people), len(hit.people) - len(hit.sure_people)
    found = f"{sure} and maybe {maybe}" if sure and maybe else f"maybe {maybe}" if maybe else str(sure)
    alike = len(hit.copies) + len(hit.others)
    more = f" · and {alike} alike" if alike else ""
    return f"{found} of {len(answer.people)} · score {hit.score:.2f}{more}"


def _title(answer: Answer) -> str:
    wanted = " + ".join(p.name for p in answer.people)
    return wanted + (f", without {', '.join(p.name for p in answer.without)}" if answer.without else "")


def _summary(answer: Answer) -> str:
    milliseconds = answer.seconds["search"] * 1000
    photos = pluralise(answer.searched, "photo")
    found = f"the best {len(answer.hits)} of {photos}, found in {milliseconds:.1f} ms"
    return f"{found}; no sure match of {', '.join(answer.unsure)}" if answer.unsure else found


def _contact_page(answer: Answer, title: str) -> str:
    faces = "".join(
        f'<img src="{data_address(p.picture)}" alt="{html.escape(p.name)}" title="{html.escape(p.name)}">'
        for p in answer.people
        if p.picture is not None
    )
    cards = (_card(n, hit, answer) for n, hit in enumerate(answer.hits, 1))
    return html_page(title, _summary(answer), cards, faces)


def _card(number: int, hit: PhotoHit, answer: Answer) -> str:
    boxes = "".join(_box(mark, hit) for mark in _marks(hit))
    return html_card(
        hit.path, f"{number}. {_verdict(hit, answer)}", boxes, lambda: open_picture(hit.photo).pixels
    )


def _box(mark: Mark, hit: PhotoHit) -> str:
    width, height = max(1, hit.photo.width), max(1, hit.photo.height)
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


_MOST_GROUPS = 200  # on one sheet
_MOST_COPIES = 6  # of a group
_COPY_CELL, _COPY_GAP, _COPY_LINE = 240, 16, 24
_TITLE = "Near-duplicates"


def duplicate_sheet(groups: Sequence[DuplicateGroup], path: Path) -> None:
    """Write groups of copies as a sheet; the suffix decides: `.png`, `.jpg` or `.html`."""
    drawn = groups[:_MOST_GROUPS]
    copies = sum(len(group.photos) - 1 for group in groups)
    summary = f"{pluralise(len(groups), 'group')}, {pluralise(copies, 'photo')} besides the largest of each"
    if len(drawn) < len(groups):
        summary += f"; the first {len(drawn)} groups are shown"
    write_sheet(
        path,
        lambda: html_page(_TITLE, summary, _duplicate_cards(drawn)),
        lambda: _duplicate_picture(drawn, summary),
    )


def _duplicate_cards(groups: Sequence[DuplicateGroup]) -> Iterator[str]:
    for number, group in enumerate(groups, 1):
        yield f'<h2 style="grid-column:1/-1;margin:0">{number}. {_copies(group)}</h2>'
        for photo, pixels in _shown_copies(group):
            yield html_card(photo, _size(pixels))


def _duplicate_picture(groups: Sequence[DuplicateGroup], summary: str) -> Image:
    from PIL import Image, ImageDraw

    columns = max((min(len(group.photos), _MOST_COPIES) for group in groups), default=1)
    row = _COPY_CELL + 3 * _COPY_LINE + _COPY_GAP
    width = max(640, _COPY_GAP + columns * (_COPY_CELL + _COPY_GAP))
    sheet = Image.new("RGB", (width, 5 * _COPY_LINE + len(groups) * row), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((_COPY_GAP, _COPY_GAP), _TITLE, font=font(30), fill=INK)
    draw.text(
        (_COPY_GAP, _COPY_GAP + 2 * _COPY_LINE),
        fit_text(summary, width - 2 * _COPY_GAP, 18),
        font=font(18),
        fill=FAINT,
    )
    for number, group in enumerate(groups):
        top = 5 * _COPY_LINE + number * row
        draw.text((_COPY_GAP, top), f"{number + 1}. {_copies(group)}", font=font(19), fill=INK)
        for column, (photo, pixels) in enumerate(_shown_copies(group)):
            left = _COPY_GAP + column * (_COPY_CELL + _COPY_GAP)
            small = _small(photo)
            sheet.paste(small, (left, top + _COPY_LINE + 4), rounded_mask(small.size, 8))
            below = f"{_size(pixels)}  {display_path(photo.name)}"
            place = (left, top + _COPY_LINE + _COPY_CELL + 8)
            draw.text(place, fit_text(below, _COPY_CELL, 15), font=font(15), fill=FAINT)
    return sheet


def _shown_copies(group: DuplicateGroup) -> list[tuple[Path, int]]:
    return list(zip(group.photos, group.pixels, strict=True))[:_MOST_COPIES]


def _small(path: Path) -> Image:
    from setnet.faces import open_photo

    try:
        return thumbnail(open_photo(path, enough=2 * _COPY_CELL).pixels, _COPY_CELL)
    except PhotoError:
        return gone_card((_COPY_CELL, _COPY_CELL * 3 // 4))


def _copies(group: DuplicateGroup) -> str:
    count = len(group.photos)
    return f"{count} copies" + (f", {_MOST_COPIES} shown" if count > _MOST_COPIES else "")


def _size(pixels: int) -> str:
    return f"{pixels / 1e6:.2f} megapixels"


_FACE_SIDE, _GROUP_GAP, _GROUP_CAPTION = 96, 10, 190
_GROUP_FACES = 10  # of a group
_MOST_SHEET_GROUPS = 200  # groups
_GROUP_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:24px;background:#fafaf9;color:#111827}"
    "section{display:flex;align-items:center;gap:10px;margin:10px 0}p{width:180px;margin:0}"
    f"small{{color:#6b7280;display:block}}img{{width:{_FACE_SIDE}px;height:{_FACE_SIDE}px;border-radius:8px}}"
)


def group_sheet(library: Library, groups: Sequence[Group], path: Path) -> None:
    """Draw some faces of each group; the suffix decides: `.png`, `.jpg` or `.html`."""
    check_sheet_path(path)
    rows = [(group, _face_pictures(library, group)) for group in groups[:_MOST_SHEET_GROUPS]]
    write_sheet(path, lambda: _group_page(rows), lambda: _group_picture(rows))


def _face_pictures(library: Library, group: Group) -> list[bytes]:
    """Return pictures of a group's faces, evenly chosen over its time; photos that are gone have none."""
    members = library.groups.members(group.id)
    chosen = members[:: max(1, -(-len(members) // _GROUP_FACES))]
    pictures = []
    for face in chosen:
        try:
            pictures.append(library.photos.face_thumbnail(face.photo_id, face.face, _FACE_SIDE))
        except PhotoError:
            continue
    return pictures


def _group_caption(group: Group) -> tuple[str, str]:
    title = f"{group.id}  {group.name}" if group.name else group.id
    hidden = ", hidden" if group.hidden else ""
    return title, f"{pluralise(group.faces, 'face')}, {pluralise(group.photos, 'photo')}{hidden}"


def _group_picture(rows: Sequence[tuple[Group, list[bytes]]]) -> Image:
    from PIL import Image, ImageDraw

    size = (
        _GROUP_CAPTION + _GROUP_FACES * (_FACE_SIDE + _GROUP_GAP) + _GROUP_GAP,
        max(1, len(rows)) * (_FACE_SIDE + _GROUP_GAP) + _GROUP_GAP,
    )
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    for number, (group, pictures) in enumerate(rows):
        y = _GROUP_GAP + number * (_FACE_SIDE + _GROUP_GAP)
        title, facts = _group_caption(group)
        draw.text((_GROUP_GAP, y + 24), title, font=font(19), fill=INK)
        draw.text((_GROUP_GAP, y + 52), facts, font=font(14), fill=FAINT)
        for place in range(min(_GROUP_FACES, max(len(pictures), 1))):
            x = _GROUP_CAPTION + place * (_FACE_SIDE + _GROUP_GAP)
            if place < len(pictures):
                sheet.paste(Image.open(io.BytesIO(pictures[place])), (x, y))
            else:
                draw.rectangle([x, y, x + _FACE_SIDE - 1, y + _FACE_SIDE - 1], fill=GREY)
    return sheet


def _group_page(rows: Sequence[tuple[Group, list[bytes]]]) -> str:
    sections = []
    for group, pictures in rows:
        title, facts = (html.escape(text) for text in _group_caption(group))
        images = "".join(
            f'<img alt="" src="data:image/jpeg;base64,{base64.b64encode(picture).decode("ascii")}">'
            for picture in pictures
        )
        sections.append(f"<section><p><b>{title}</b><small>{facts}</small></p>{images}</section>")
    body = "\n".join(sections)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Who is this?</title>'
        f"<style>{_GROUP_STYLE}</style><h1>Who is this?</h1>\n{body}\n</html>\n"
    )
