"""Captions inside photo files: EXIF, IPTC and XMP; read by a worker process, as photos are untrusted."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from setnet.sandbox import Message, Tasks, as_bytes

if TYPE_CHECKING:
    from PIL.Image import Image

_LARGEST_FILE = 512 << 20
_LONGEST_CAPTION = 20_000
_FORMATS = ["JPEG", "MPO", "PNG", "TIFF", "WEBP"]
_DESCRIPTION, _CAMERA_PART, _USER_COMMENT = 0x010E, 0x8769, 0x9286
_WINDOWS = (0x9C9B, 0x9C9C, 0x9C9F)  # title, comment, subject: UTF-16
_IPTC = ((2, 5), (2, 105), (2, 120), (2, 25))  # title, headline, caption, keywords
_XMP = ("title", "description", "Headline", "PersonInImage", "Title", "Description")
_ENTITY = re.compile(r"<!(DOCTYPE|ENTITY)", re.IGNORECASE)


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Return the task of a process that reads captions: ``caption`` of a file."""
    return {"caption": _caption}


def _caption(task: Message) -> Message:
    with open(task.fields["path"], "rb") as file:
        data = file.read(_LARGEST_FILE + 1)
    text = embedded_caption(data) if len(data) <= _LARGEST_FILE else ""
    return Message("done", arrays={"text": as_bytes(text.encode("utf-8", "replace"))})


def embedded_caption(data: bytes) -> str:
    """Return the texts in a photo file that say what is on it, each once; empty if there are none."""
    from PIL import Image

    parts: dict[str, None] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                for read in _READERS:
                    _add(read, image, parts)
    except Exception:  # no photo, or a damaged one: finding its faces will say so
        return ""
    return "\n".join(parts)[:_LONGEST_CAPTION]


def _add(read: Callable[[Image], Iterator[str]], image: Image, parts: dict[str, None]) -> None:
    try:
        for text in read(image):
            if clean := text.replace("\0", "").strip():
                parts[clean] = None
    except Exception:  # one damaged block must not cost the others
        return


def _exif(image: Image) -> Iterator[str]:
    exif = image.getexif()
    yield _decoded(exif.get(_DESCRIPTION))
    for tag in _WINDOWS:
        value = exif.get(tag)
        yield bytes(value).decode("utf-16-le", "ignore") if value else ""
    comment = exif.get_ifd(_CAMERA_PART).get(_USER_COMMENT)
    if isinstance(comment, bytes):
        kind, text = comment[:8].rstrip(b"\0"), comment[8:]
        yield text.decode("utf-16", "ignore") if kind == b"UNICODE" else _decoded(text)
    else:
        yield _decoded(comment)


def _iptc(image: Image) -> Iterator[str]:
    from PIL import ImageFile, IptcImagePlugin

    found = IptcImagePlugin.getiptcinfo(image) if isinstance(image, ImageFile.ImageFile) else None
    for key in _IPTC:
        value = (found or {}).get(key)
        yield "; ".join(map(_decoded, value)) if isinstance(value, list) else _decoded(value)


def _xmp(image: Image) -> Iterator[str]:
    packet = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or ""
    text = packet.decode("utf-8", "ignore") if isinstance(packet, bytes) else str(packet)
    if not text or _ENTITY.search(text):  # entities can be made to grow without end; XMP has none
        return
    root = ElementTree.fromstring(text.strip("\0 \n"))  # noqa: S314
    for element in root.iter():
        for name in (element.tag, *element.attrib):
            if name.rpartition("}")[2] in _XMP:
                texts = element.itertext() if name == element.tag else iter([element.attrib[name]])
                yield "; ".join(clean for part in texts if (clean := part.strip()))


_READERS = (_exif, _iptc, _xmp)


def _decoded(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.decode("latin-1")
    return str(value or "")
