"""Sheets of photos or groups: one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.durable import replace_file, storage_errors
from setnet.errors import InvalidInputError, PhotoError
from setnet.faces import Box
from setnet.library.answer import Answer
from setnet.library.groups import Group, GroupFace
from setnet.library.paths import display_path
from setnet.library.photos import PhotoHit
from setnet.library.pictures import jpeg, open_picture, thumbnail
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import Photo
    from setnet.library.library import Library


@dataclass(frozen=True, slots=True)
class Mark:
    """A face: one with a `label` is marked as a match, in green, or in yellow when it is not `sure`."""

    box: Box
    label: str | None = None
    sure: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """A photo on a sheet; `open` raises a `PhotoError` where it is gone."""

    open: Callable[[], Photo]
    caption: str = ""
    name: str = ""
    path: Path | None = None
    marks: Sequence[Mark] = ()


def check_sheet_path(path: Path) -> None:
    """Raise for a file that no sheet can be written to because of its suffix."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"a sheet is an .html file, not {display_path(path)!r}")


def write_sheet(
    path: Path, title: str, summary: str, sections: Iterable[tuple[str, Sequence[Card]]], width: int
) -> None:
    """Write cards in sections, each under its title, as a page with pictures so many pixels wide."""
    check_sheet_path(path)
    cards: list[str] = []
    for heading, inside in sections:
        cards += [f"<h2>{html.escape(heading)}</h2>"] if heading else []
        cards += [_html_card(card, 2 * width) for card in inside]  # twice as many, for screens that show them
    parts = {
        "title": html.escape(title),
        "summary": html.escape(summary),
        "width": str(width),
        "cards": "\n".join(cards),
    }
    template = files("setnet.library").joinpath("contact_sheet.html").read_text(encoding="utf-8")
    page = re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], template)
    with storage_errors(path, "cannot write "):
        replace_file(path, page.encode())  # faces and names are for the owner's eyes


def _html_card(card: Card, side: int) -> str:
    """Return a card as HTML, its picture at most so many pixels high and wide, with a link to its file."""
    name = html.escape(card.name)
    try:
        opened = card.open()
        image = base64.b64encode(jpeg(thumbnail(opened.pixels, side), 82)).decode("ascii")
        picture = f'<img src="data:image/jpeg;base64,{image}" alt="{name}" loading="lazy">'
        picture += "".join(_html_mark(mark, opened) for mark in card.marks)
    except PhotoError:
        picture = '<p class="gone">not there any more</p>'
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


def contact_sheet(answer: Answer, path: Path, title: str | None = None) -> None:
    """Write the answer as a contact sheet, a page of HTML."""
    names = " + ".join(person.name for person in answer.people)
    if answer.without:
        names += f", without {', '.join(person.name for person in answer.without)}"
    milliseconds = answer.seconds["search"] * 1000
    photos = pluralise(answer.searched, "photo")
    summary = f"the best {len(answer.hits)} of {photos}, found in {milliseconds:.1f} ms"
    if answer.unsure:
        summary += f"; no sure match of {', '.join(answer.unsure)}"
    cards = [hit_card(number, hit, answer) for number, hit in enumerate(answer.hits, 1)]
    write_sheet(path, title or names, summary, [("", cards)], 320)


def hit_card(number: int, hit: PhotoHit, answer: Answer) -> Card:
    """Return the card of a hit, with its faces marked."""
    matches = {m.face: m for m in hit.matches}
    boxes = [Box(*face.corners_at(hit.photo.best)) for face in hit.photo.faces]
    marks = [
        Mark(box)
        if (match := matches.get(face.ordinal)) is None
        else Mark(box, f"{match.label} {match.similarity:.2f}", match.sure)
        for face, box in zip(hit.photo.faces, boxes, strict=True)
    ]
    marks += [Mark(m.box, m.label, m.sure) for m in hit.matches if m.face is None and m.box is not None]
    folder, name = os.path.split(hit.photo.display_name)
    place = os.path.join(os.path.basename(folder), name)
    return Card(lambda: open_picture(hit.photo), f"{number}.  {_result(hit, answer)}", place, hit.path, marks)


def _result(hit: PhotoHit, answer: Answer) -> str:
    sure, maybe = len(hit.sure_people), len(hit.people) - len(hit.sure_people)
    found = f"{sure} and maybe {maybe}" if sure and maybe else f"maybe {maybe}" if maybe else str(sure)
    alike = len(hit.copies) + len(hit.others)
    more = f" · and {alike} alike" if alike else ""
    return f"{found} of {len(answer.people)} · score {hit.score:.2f}{more}"


_MAX_GROUPS = 200  # on one sheet
_FACE, _MAX_FACES = 96, 10


def group_sheet(library: Library, groups: Sequence[Group], path: Path) -> None:
    """Write some faces of each group as a sheet, a page of HTML."""
    sections = []
    for group in groups[:_MAX_GROUPS]:
        hidden = ", hidden" if group.hidden else ""
        facts = f"{pluralise(group.faces, 'face')}, {pluralise(group.photos, 'photo')}{hidden}"
        sections.append((f"{group.id}  {group.name or ''}  {facts}", _face_cards(library, group)))
    summary = pluralise(len(groups), "group")
    write_sheet(path, "Who is this?", summary, sections, _FACE)


def _face_cards(library: Library, group: Group) -> list[Card]:
    """Return the cards of a group's faces, evenly chosen over its time."""
    from setnet.faces import open_photo

    def card(face: GroupFace) -> Card:
        photos = library.photos
        return Card(lambda: open_photo(photos.face_thumbnail(face.photo_id, face.face, _FACE)))

    members = library.groups.members(group.id)
    return [card(face) for face in members[:: max(1, -(-len(members) // _MAX_FACES))]]
