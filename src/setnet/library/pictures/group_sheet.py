"""A sheet of groups: each with its id and some of its faces, as one picture or one page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.errors import InvalidInputError, PhotoError, StorageError
from setnet.library.grouping.groups.group import Group
from setnet.library.pictures.drawing import GREY, INK, font
from setnet.library.store.paths import shown
from setnet.wording import counted

if TYPE_CHECKING:
    from PIL.Image import Image

    from setnet.library.library import Library

_SIDE, _GAP, _CAPTION = 96, 10, 190
_FACES = 10  # of a group
_MOST = 200  # groups
_PAPER, _FAINT = (250, 250, 249), (107, 114, 128)
_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:24px;background:#fafaf9;color:#111827}"
    "section{display:flex;align-items:center;gap:10px;margin:10px 0}p{width:180px;margin:0}"
    f"small{{color:#6b7280;display:block}}img{{width:{_SIDE}px;height:{_SIDE}px;border-radius:8px}}"
)


def group_sheet(library: Library, groups: Sequence[Group], path: Path) -> None:
    """Draw some faces of each group; the suffix decides: `.png`, `.jpg` or `.html`."""
    suffix = path.suffix.lower()
    if suffix not in (".png", ".jpg", ".jpeg", ".html", ".htm"):
        raise InvalidInputError(f"a sheet is a .png, .jpg or .html file, not {shown(path)!r}")
    rows = [(group, _pictures(library, group)) for group in groups[:_MOST]]
    try:
        if suffix in (".html", ".htm"):
            path.write_text(_page(rows), encoding="utf-8")
        else:
            _picture(rows).save(path)
    except OSError as error:
        raise StorageError(f"cannot write {shown(path)}: {error.strerror or error}") from error


def _pictures(library: Library, group: Group) -> list[bytes]:
    """Return pictures of a group's faces, evenly chosen over its time; photos that are gone have none."""
    members = library.groups.members(group.id)
    chosen = members[:: max(1, -(-len(members) // _FACES))]
    pictures = []
    for face in chosen:
        try:
            pictures.append(library.face_thumbnail(face.photo_id, face.face, _SIDE))
        except PhotoError:
            continue
    return pictures


def _caption(group: Group) -> tuple[str, str]:
    title = f"{group.id}  {group.name}" if group.name else group.id
    hidden = ", hidden" if group.hidden else ""
    return title, f"{counted(group.faces, 'face')}, {counted(group.photos, 'photo')}{hidden}"


def _picture(rows: Sequence[tuple[Group, list[bytes]]]) -> Image:
    from PIL import Image, ImageDraw

    size = (_CAPTION + _FACES * (_SIDE + _GAP) + _GAP, max(1, len(rows)) * (_SIDE + _GAP) + _GAP)
    sheet = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(sheet)
    for number, (group, pictures) in enumerate(rows):
        y = _GAP + number * (_SIDE + _GAP)
        title, facts = _caption(group)
        draw.text((_GAP, y + 24), title, font=font(19), fill=INK)
        draw.text((_GAP, y + 52), facts, font=font(14), fill=_FAINT)
        for place in range(min(_FACES, max(len(pictures), 1))):
            x = _CAPTION + place * (_SIDE + _GAP)
            if place < len(pictures):
                sheet.paste(Image.open(io.BytesIO(pictures[place])), (x, y))
            else:
                draw.rectangle([x, y, x + _SIDE - 1, y + _SIDE - 1], fill=GREY)
    return sheet


def _page(rows: Sequence[tuple[Group, list[bytes]]]) -> str:
    sections = []
    for group, pictures in rows:
        title, facts = (html.escape(text) for text in _caption(group))
        images = "".join(
            f'<img alt="" src="data:image/jpeg;base64,{base64.b64encode(picture).decode("ascii")}">'
            for picture in pictures
        )
        sections.append(f"<section><p><b>{title}</b><small>{facts}</small></p>{images}</section>")
    body = "\n".join(sections)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Who is this?</title>'
        f"<style>{_STYLE}</style><h1>Who is this?</h1>\n{body}\n</html>\n"
    )
