"""The text of each photo: of files beside it, of EXIF, IPTC and XMP inside it, else the file's own name."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setnet.collect.run import CollectRun, Row, Work
from setnet.connect.xmp import names_in_xmp
from setnet.errors import SetNetError
from setnet.library.folder_scan import FolderScan
from setnet.sandbox import Message, Service, Tasks, WorkerPool, unordered_map
from setnet.sandbox.messages import as_bytes

if TYPE_CHECKING:
    from PIL.Image import Image

_TABLE = "captions.csv"
_AT_ONCE = 256
_LARGEST_FILE = 512 << 20
_LONGEST_CAPTION = 20_000
_FORMATS = ["JPEG", "MPO", "PNG", "TIFF", "WEBP"]
_EXIF_DESCRIPTION = 0x010E
_IPTC = ((2, 5), (2, 105), (2, 120), (2, 25))  # title, headline, caption, keywords


def caption_rows(run: CollectRun, work: Work) -> Iterator[Row]:
    """Yield a row per photo with its text, and one per caption file or folder that cannot be read."""
    scan = FolderScan([os.fsencode(folder) for folder in run.settings.photos])
    photos = (os.fsdecode(file.path) for file in scan.files())
    problems: list[str] = []
    folder, table = "", dict[str, str]()
    pool = WorkerPool(Service("setnet.collect.captions"), work.processes)
    try:
        while batch := list(islice(photos, _AT_ONCE)):
            left = [photo for photo in batch if photo not in work.done]
            inside = dict(unordered_map(lambda photo: (photo, _ask(pool, photo)), left, pool.capacity))
            for photo in left:
                if folder != (folder := os.path.dirname(photo)):
                    table = _read_table(Path(folder) / _TABLE, problems)
                own = _read_text(Path(photo).with_suffix(".txt"), problems)
                yield _row(photo, [table.get(os.path.basename(photo), ""), own], inside[photo])
            yield from map(_problem_row, problems)
            problems.clear()
    finally:
        pool.close()
    for path, why in scan.unreadable:
        yield _problem_row(f"{os.fsdecode(path)}: {why}")


def _row(photo: str, beside: list[str], inside: str) -> Row:
    parts = dict.fromkeys(text for text in (*beside, inside) if text)
    origin = [name for name, found in (("beside", any(beside)), ("inside", inside)) if found] or ["name"]
    if not parts:
        parts[Path(photo).stem.encode("utf-8", "replace").decode()] = None
    return {"photo": photo, "kept": True, "text": "\n".join(parts), "from": origin}


def _problem_row(problem: str) -> Row:
    return {"photo": problem, "kept": False, "reason": "caption file", "detail": problem}


def _read_table(file: Path, problems: list[str]) -> dict[str, str]:
    """Return the captions of a folder's photos by their names; of two rows for one photo the first counts."""
    captions: dict[str, str] = {}
    try:
        for row in csv.DictReader(io.StringIO(_read_text(file, problems))):
            captions.setdefault(row["photo"], (row["caption"] or "").strip())
    except (KeyError, csv.Error) as error:
        problems.append(f"{file}: cannot be read ({error!r}); expected the columns photo and caption")
    return captions


def _read_text(file: Path, problems: list[str]) -> str:
    """Return the text of a file beside photos; empty if there is none or it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig").strip()
    except FileNotFoundError:
        pass
    except UnicodeDecodeError as error:
        problems.append(f"{file}: byte {error.start} is no UTF-8 text, not used; save it as UTF-8")
    except OSError as error:
        problems.append(f"{file}: cannot be read ({error.strerror or error})")
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
    packet = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or b""
    found = names_in_xmp(packet if isinstance(packet, bytes) else str(packet).encode())
    yield from (*found.texts, "; ".join(found.names))


def _decode(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.decode("latin-1")
    return str(value or "")
