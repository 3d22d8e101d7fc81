"""What all sheets of photos share: a file by its suffix, a page that needs nothing else, cards of photos."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, PhotoError, StorageError
from setnet.library.pictures.drawing import GREY, INK, font
from setnet.library.pictures.small_pictures import jpeg, thumbnail
from setnet.library.store.paths import shown

if TYPE_CHECKING:
    from PIL.Image import Image

PAPER = (250, 250, 249)
FAINT = (107, 114, 128)
_PAGES = (".html", ".htm")


def refuse_sheet(path: Path) -> None:
    """Raise for a file that no sheet can be written to because of its suffix."""
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg", *_PAGES):
        raise InvalidInputError(f"a contact sheet is a .png, .jpg or .html file, not {shown(path)!r}")


def write_sheet(path: Path, page: Callable[[], str], picture: Callable[[], Image]) -> None:
    """Write a sheet as a page or as a picture; the suffix decides."""
    refuse_sheet(path)
    try:
        if path.suffix.lower() in _PAGES:
            path.write_text(page(), encoding="utf-8")
        else:
            picture().save(path)
    except OSError as error:
        raise StorageError(f"cannot write {shown(path)}: {error.strerror or error}") from error


def page(title: str, summary: str, cards: Iterable[str], faces: str = "") -> str:
    """Return a page of cards; `faces` and the cards are HTML, the texts are not."""
    template = files("setnet.library.pictures").joinpath("contact_sheet.html").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(title),
        "faces": faces,
        "summary": html.escape(summary),
        "cards": "\n".join(cards),
    }
    return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], template)


def card(
    path: Path, caption: str, above: str = "", pixels: Callable[[], NDArray[np.uint8]] | None = None
) -> str:
    """Return a photo as HTML, with a link to its file, a caption and what lies `above` it.

    `pixels` gives those to show where the file is no photo.
    """
    from setnet.faces import open_photo

    name = html.escape(shown(path.name))
    try:
        image = thumbnail(open_photo(path).pixels if pixels is None else pixels(), 640)
        picture = f'<img src="{data_address(jpeg(image, 82))}" alt="{name}" loading="lazy">'
    except PhotoError:
        picture = '<p class="gone">not there any more</p>'
    link = html.escape(path.absolute().as_uri()) if shown(path) == str(path) else "#"
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


def fitted(text: str, width: int, size: int) -> str:
    """Return a text cut so that it fits a width in letters of a size."""
    letters = font(size)
    if letters.getlength(text) <= width:
        return text
    while text and letters.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


def rounded(size: tuple[int, int], radius: int) -> Image:
    """Return a mask with round corners."""
    from PIL import Image, ImageDraw

    mask = Image.new("L", (size[0] * 2, size[1] * 2), 0)
    ImageDraw.Draw(mask).rounded_rectangle([0, 0, size[0] * 2 - 1, size[1] * 2 - 1], radius * 2, fill=255)
    return mask.resize(size, Image.Resampling.LANCZOS)
