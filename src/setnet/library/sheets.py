"""Sheets of photos, near-duplicates or groups: one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.durable import replace_file, storage_errors
from setnet.errors import InvalidInputError, PhotoError
from setnet.faces import Box
from setnet.library.answer import Answer
from setnet.library.duplicates import DuplicateGroup
from setnet.library.groups import Group, GroupFace
from setnet.library.paths import display_path
from setnet.library.photos import PhotoHit
from setnet.library.pictures import jpeg, open_picture, thumbnail
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import Photo
    from setnet.library.library import Library

_GONE = "not there any more"


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


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Cards in sections, each under its title."""

    title: str
    summary: str
    sections: Sequence[tuple[str, Sequence[Card]]]
    width: int  # of a photo, in pixels; its picture has twice as many, for screens that show them
    # names and small pictures of people for the head of the sheet
    portraits: Sequence[tuple[str, bytes]] = ()

    def write(self, path: Path) -> None:
        """Write the sheet as a page."""
        check_sheet_path(path)
        with storage_errors(path, "cannot write "):
            replace_file(path, self.page().encode())  # faces and names are for the owner's eyes

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
            "width": str(self.width),
            "cards": "\n".join(self._cards()),
        }
        return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], template)

    def _cards(self) -> Iterator[str]:
        for title, cards in self.sections:
            if title:
                yield f"<h2>{html.escape(title)}</h2>"
            yield from (_html_card(card, 2 * self.width) for card in cards)


def check_sheet_path(path: Path) -> None:
    """Raise for a file that no sheet can be written to because of its suffix."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"a sheet is an .html file, not {display_path(path)!r}")


def _html_card(card: Card, side: int) -> str:
    """Return a card as HTML, its picture at most so many pixels high and wide, with a link to its file."""
    name = html.escape(card.name)
    try:
        opened = card.open()
        image = jpeg(thumbnail(opened.pixels, side), 82)
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


def contact_sheet(answer: Answer, path: Path, title: str | None = None) -> None:
    """Write the answer as a contact sheet, a page of HTML."""
    cards = [hit_card(number, hit, answer) for number, hit in enumerate(answer.hits, 1)]
    portraits = [(person.name, person.picture) for person in answer.people if person.picture is not None]
    Sheet(title or _title(answer), _summary(answer), [("", cards)], 320, portraits).write(path)


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


def _title(answer: Answer) -> str:
    title = " + ".join(p.name for p in answer.people)
    return title + (f", without {', '.join(p.name for p in answer.without)}" if answer.without else "")


def _summary(answer: Answer) -> str:
    milliseconds = answer.seconds["search"] * 1000
    photos = pluralise(answer.searched, "photo")
    found = f"the best {len(answer.hits)} of {photos}, found in {milliseconds:.1f} ms"
    return f"{found}; no sure match of {', '.join(answer.unsure)}" if answer.unsure else found


_MAX_GROUPS, _MAX_COPIES = 200, 6  # on one sheet, and of a group
_FACE, _MAX_FACES = 96, 10


def duplicate_sheet(groups: Sequence[DuplicateGroup], path: Path) -> None:
    """Write groups of copies as a sheet, a page of HTML."""
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
    Sheet("Near-duplicates", summary, sections, 240).write(path)


def _copy_card(path: Path, pixels: int) -> Card:
    from setnet.faces import open_photo

    size = f"{pixels / 1e6:.2f} megapixels"
    return Card(lambda: open_photo(path, enough=480), size, display_path(path.name), path)


def group_sheet(library: Library, groups: Sequence[Group], path: Path) -> None:
    """Write some faces of each group as a sheet, a page of HTML."""
    sections = []
    for group in groups[:_MAX_GROUPS]:
        hidden = ", hidden" if group.hidden else ""
        facts = f"{pluralise(group.faces, 'face')}, {pluralise(group.photos, 'photo')}{hidden}"
        sections.append((f"{group.id}  {group.name or ''}  {facts}", _face_cards(library, group)))
    summary = pluralise(len(groups), "group")
    Sheet("Who is this?", summary, sections, _FACE).write(path)


def _face_cards(library: Library, group: Group) -> list[Card]:
    """Return the cards of a group's faces, evenly chosen over its time."""
    from setnet.faces import open_photo

    def card(face: GroupFace) -> Card:
        photos = library.photos
        return Card(lambda: open_photo(photos.face_thumbnail(face.photo_id, face.face, _FACE)))

    members = library.groups.members(group.id)
    return [card(face) for face in members[:: max(1, -(-len(members) // _MAX_FACES))]]
