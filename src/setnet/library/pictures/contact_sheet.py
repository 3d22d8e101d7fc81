"""Contact sheets: an answer as one picture, or as one page that needs nothing else."""

from __future__ import annotations

import html
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.errors import PhotoError
from setnet.faces import Box
from setnet.library.pictures.drawing import INK, Mark, draw_marks, font
from setnet.library.pictures.sheet import (
    FAINT,
    PAPER,
    card,
    data_address,
    fitted,
    gone_card,
    page,
    rounded,
    write_sheet,
)
from setnet.library.pictures.small_pictures import thumbnail
from setnet.library.pictures.thumbnails import opened_picture
from setnet.library.search.answer import Answer
from setnet.library.store.records import PhotoHit
from setnet.wording import counted

if TYPE_CHECKING:
    from PIL.Image import Image

_CELL = 360
_CAPTION = 58
_GAP = 18
_HEADER = 132


def contact_sheet(answer: Answer, path: Path, title: str | None = None) -> None:
    """Write the answer as a contact sheet; the suffix decides: `.png`, `.jpg` or `.html`."""
    name = title or _title(answer)
    write_sheet(path, lambda: _page(answer, name), lambda: _picture(answer, name))


def _picture(answer: Answer, title: str) -> Image:
    from PIL import Image, ImageDraw

    hits = answer.hits
    columns = min((5, 4, 3), key=lambda n: -len(hits) % n)  # the fewest empty places, then the widest
    rows = max(1, -(-len(hits) // columns))
    width = _GAP + columns * (_CELL + _GAP)
    height = _HEADER + rows * (_CELL * 3 // 4 + _CAPTION + _GAP) + _GAP
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    x = _GAP
    for person in answer.people:
        if person.picture is not None:
            face = Image.open(io.BytesIO(person.picture)).convert("RGB").resize((96, 96))
            sheet.paste(face, (x, _GAP), rounded(face.size, 48))
            x += 96 + 10
    x += 8 if x > _GAP else 0
    draw.text((x, _GAP + 14), fitted(title, width - x - _GAP, 30), font=font(30), fill=INK)
    draw.text((x, _GAP + 56), fitted(_summary(answer), width - x - _GAP, 19), font=font(19), fill=FAINT)
    for number, hit in enumerate(hits):
        x = _GAP + number % columns * (_CELL + _GAP)
        y = _HEADER + number // columns * (_CELL * 3 // 4 + _CAPTION + _GAP)
        picture = _marked(hit, (_CELL, _CELL * 3 // 4))
        left = x + (_CELL - picture.width) // 2
        sheet.paste(picture, (left, y + _CELL * 3 // 4 - picture.height), rounded(picture.size, 8))
        below = y + _CELL * 3 // 4 + 6
        draw.text((x, below), f"{number + 1}.  {_verdict(hit, answer)}", font=font(19), fill=INK)
        draw.text((x, below + 25), fitted(_place(hit), _CELL, 16), font=font(16), fill=FAINT)
    return sheet


def _marked(hit: PhotoHit, size: tuple[int, int]) -> Image:
    """Return the hit's photo in `size`, faces drawn; a photo that cannot be opened leaves a grey card."""
    from PIL import Image

    try:
        opened = opened_picture(hit.photo)
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
    found = (
        f"the best {len(answer.hits)} of {counted(answer.searched, 'photo')}, found in {milliseconds:.1f} ms"
    )
    return f"{found}; no sure match of {', '.join(answer.unsure)}" if answer.unsure else found


def _page(answer: Answer, title: str) -> str:
    faces = "".join(
        f'<img src="{data_address(p.picture)}" alt="{html.escape(p.name)}" title="{html.escape(p.name)}">'
        for p in answer.people
        if p.picture is not None
    )
    cards = (_card(n, hit, answer) for n, hit in enumerate(answer.hits, 1))
    return page(title, _summary(answer), cards, faces)


def _card(number: int, hit: PhotoHit, answer: Answer) -> str:
    boxes = "".join(_box(mark, hit) for mark in _marks(hit))
    return card(
        hit.path, f"{number}. {_verdict(hit, answer)}", boxes, lambda: opened_picture(hit.photo).pixels
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
