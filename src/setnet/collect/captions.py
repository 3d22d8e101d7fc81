"""The text of each photo: of files beside it, of EXIF, IPTC and XMP inside it, else the file's own name."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from setnet.collect.run import CollectRun, Row, Work
from setnet.errors import SetNetError
from setnet.library.folder_scan import FolderScan
from setnet.sandbox import Message, Service, Tasks, WorkerPool, unordered_map
from setnet.sandbox.messages import as_bytes

if TYPE_CHECKING:
    from PIL.Image import Image

_TABLES = ("captions.csv", "captions.json")
_AT_ONCE = 256
_LARGEST_FILE = 512 << 20
_LONGEST_CAPTION = 20_000
_FORMATS = ["JPEG", "MPO", "PNG", "TIFF", "WEBP"]
_EXIF_DESCRIPTION = 0x010E
_IPTC = ((2, 5), (2, 105), (2, 120), (2, 25))  # title, headline, caption, keywords
_XMP = ("title", "description", "Headline", "PersonInImage")
_ENTITY = re.compile(r"<!(DOCTYPE|ENTITY)", re.IGNORECASE)


def caption_rows(run: CollectRun, work: Work) -> Iterator[Row]:
    """Yield a row per photo with its text.

    Caption files that cannot be used, photos that they list and that are not there, and second captions for
    one photo get rows too.
    """
    scan = FolderScan([os.fsencode(folder) for folder in run.settings.photos])
    files = CaptionFiles()
    photos = (os.fsdecode(file.path) for file in scan.files())
    pool = WorkerPool(Service("setnet.collect.captions"), work.processes)
    try:
        while batch := list(islice(photos, _AT_ONCE)):
            left = [photo for photo in batch if photo not in work.done]
            found = dict(unordered_map(lambda photo: (photo, _ask(pool, photo)), left, pool.capacity))
            for photo in batch:
                beside = files.caption(photo)  # of all photos, to know which ones of a table are missing
                if photo in found:
                    yield _row(photo, beside, found[photo])
            yield from files.problem_rows()
    finally:
        pool.close()
    files.close_folder()
    yield from files.problem_rows()
    for path, why in scan.unreadable:
        yield _problem_row(f"{os.fsdecode(path)}: {why}")


def _row(photo: str, beside: str, inside: str) -> Row:
    texts = {"beside": beside, "inside": inside}
    parts = dict.fromkeys(text for text in texts.values() if text)
    origin = [name for name, text in texts.items() if text] or ["name"]
    if not parts:
        parts[Path(photo).stem.encode("utf-8", "replace").decode()] = None
    return {"photo": photo, "kept": True, "text": "\n".join(parts), "from": origin}


def _problem_row(problem: str) -> Row:
    return {"photo": problem, "kept": False, "reason": "caption file", "detail": problem}


class CaptionFiles:
    """The captions that files of a folder hold, each table read once; photos come folder by folder.

    ``captions.csv`` has columns ``photo`` and ``caption``, ``captions.json`` is an object with the photos as
    keys, and ``photo.txt`` or ``photo.jpg.txt`` belongs to one photo.
    """

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._folder = ""
        self._captions: dict[str, str] = {}
        self._unused: dict[str, Path] = {}

    def caption(self, photo: str) -> str:
        """Return the caption of a photo; empty when no file has one."""
        folder, name = os.path.split(photo)
        if folder != self._folder:
            self.close_folder()
            self._folder = folder
            self._read_tables(Path(folder))
        self._unused.pop(name, None)
        path = Path(photo)
        own = [file for file in (path.with_suffix(".txt"), Path(f"{photo}.txt")) if file.is_file()]
        parts = [self._captions.get(name, ""), *(self._read(file).strip() for file in own)]
        return "\n".join(dict.fromkeys(part for part in parts if part))

    def close_folder(self) -> None:
        """Note the photos that tables of the folder listed and that were not there."""
        for name, file in self._unused.items():
            if not os.path.exists(os.path.join(self._folder, name)):
                self._problems.append(f"{file}: lists {name}, which is not there")
        self._captions, self._unused = {}, {}

    def problem_rows(self) -> Iterator[Row]:
        """Yield what was wrong since the last call."""
        yield from map(_problem_row, self._problems)
        self._problems.clear()

    def _read_tables(self, folder: Path) -> None:
        for file in (folder / name for name in _TABLES):
            if not file.is_file() or not (text := self._read(file)):
                continue
            try:
                if file.suffix == ".csv":
                    entries = [(row["photo"], row["caption"]) for row in csv.DictReader(io.StringIO(text))]
                else:
                    entries = list(json.loads(text).items())
            except (ValueError, KeyError, AttributeError, csv.Error) as error:
                self._problems.append(
                    f"{file}: cannot be read ({error!r}); see docs/research/collecting.md for the form"
                )
                continue
            for name, caption in entries:
                if name in self._captions:
                    self._problems.append(f"{file}: a second row for {name}, not used")
                else:
                    self._captions[name], self._unused[name] = str(caption or "").strip(), file

    def _read(self, file: Path) -> str:
        try:
            return file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            self._problems.append(f"{file}: byte {error.start} is no UTF-8 text, not used; save it as UTF-8")
        except OSError as error:
            self._problems.append(f"{file}: cannot be read ({error.strerror or error})")
        return ""


def _ask(pool: WorkerPool, photo: str) -> str:
    """Return the text inside a photo, read by another process: photos are untrusted."""
    try:
        reply = pool.call(Message("caption", {"path": photo}), lambda reply: reply.data("text"))
    except SetNetError:  # a hostile file: the step that finds its faces reports it
        return ""
    return reply.decode("utf-8", "replace")


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Return the task of a process that reads captions: ``caption`` of a file."""
    return {"caption": _answer}


def _answer(task: Message) -> Message:
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
                for read in (_read_exif, _read_iptc, _read_xmp):
                    with suppress(Exception):  # one damaged block must not cost the others
                        for text in read(image):
                            parts |= {clean: None for clean in (text.strip("\0 \n"),) if clean}
    except Exception:  # no photo, or a damaged one: the step that finds its faces reports it
        return ""
    return "\n".join(parts)[:_LONGEST_CAPTION]


def _read_exif(image: Image) -> Iterator[str]:
    yield _decode(image.getexif().get(_EXIF_DESCRIPTION))


def _read_iptc(image: Image) -> Iterator[str]:
    from PIL import ImageFile, IptcImagePlugin

    found = IptcImagePlugin.getiptcinfo(image) if isinstance(image, ImageFile.ImageFile) else None
    for key in _IPTC:
        value = (found or {}).get(key)
        yield "; ".join(map(_decode, value)) if isinstance(value, list) else _decode(value)


def _read_xmp(image: Image) -> Iterator[str]:
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


def _decode(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.decode("latin-1")
    return str(value or "")
