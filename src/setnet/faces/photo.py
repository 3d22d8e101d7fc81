"""Photo files to upright pixels: any format, whole or cut short, within limits of size and memory."""

from __future__ import annotations

import io
import math
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from setnet.addresses import is_address, read_address, to_address
from setnet.errors import PhotoError, SetNetError
from setnet.faces.exif import read_orientation, stored_orientation, taken_at
from setnet.faces.face import Box
from setnet.faces.pixels import rgb_pixels
from setnet.faces.raw import is_raw, raw_picture

if TYPE_CHECKING:
    from PIL.Image import Image


class PhotoHeader(NamedTuple):
    """The XMP packet in a photo (None where there is none), and its EXIF orientation from 1 to 8."""

    xmp: bytes | None
    orientation: int


def read_header(path: str | Path) -> PhotoHeader:
    """Return what stands before the pixels of a photo, without decoding these; `PhotoError` for no photo."""
    name = os.fsencode(path).decode("utf-8", "replace")
    with open_file(path, name) as file, open_image(file, name) as image:
        try:
            xmp = image.info.get("xmp")
            orientation = stored_orientation(image)
        except Exception as error:  # decoders raise whatever they like on damaged data
            raise PhotoError(f"{name}: damaged file ({error})") from error
    if isinstance(xmp, str):
        xmp = xmp.encode("utf-8", "surrogateescape")
    return PhotoHeader(xmp if isinstance(xmp, bytes) else None, orientation)


_END = b"\xff\xd9"
_NO_MARKERS = frozenset((0x00, 0xFF, *range(0xD0, 0xD8)))  # after 0xFF these are part of the picture's data
_ATTEMPTS = 3
_BLOCKS = 16  # rows that are decoded together; of the first ones nothing may be right


def complete_jpeg(data: bytes) -> Iterator[bytes]:
    """Yield a JPEG file with an end, after which its decoder fills what is missing instead of giving up.

    A file may be cut inside a table between two parts of the picture, which would swallow the end: the next
    attempts leave out what follows the last markers.
    """
    yield data + _END
    at, found = len(data), 0
    while found < _ATTEMPTS and (at := data.rfind(b"\xff", 0, at)) > 0:
        if at + 1 < len(data) and data[at + 1] not in _NO_MARKERS:
            found += 1
            yield data[:at] + _END


def cut_short_note(image: Image) -> str | None:
    """Return what to tell about a decoded JPEG that was cut short; None if nothing of it can be seen.

    Missing blocks are decoded as one flat colour. A progressive file has the whole picture early on, and
    lacks detail.
    """
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    differs = (pixels != pixels[-1, -1]).any(axis=(1, 2))
    rows = len(differs) - int(np.argmax(differs[::-1])) if differs.any() else 0
    if rows <= min(_BLOCKS, len(differs) - 1):
        return None
    missing = 1.0 - rows / len(differs)
    lost = f"the last {missing:.0%} of the picture are" if missing >= 0.01 else "some of its detail is"
    return f"cut short: {lost} missing, the rest was read"


DEFAULT_MAX_PIXELS = 128_000_000  # 384 MB decoded
_MAX_HALVED = 2  # times as many pixels may be in a JPEG, which is then decoded at half its size or less
LONGEST_SEARCHED = 3  # times the shorter side; what is longer is a panorama, of which parts are searched
_BYTES_PER_PIXEL = 16  # of the most wasteful file: uncompressed, four channels of 32 bits
_ALWAYS_READ = 1 << 28  # small enough to look inside and say how many pixels there are
# Only photo formats: the fewer decoders an untrusted file can reach, the better.
_MAX_SCANS = 100  # of a progressive JPEG; encoders make about ten
_MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd8\xff]")  # with a length, but for the end
_SCAN, _PICTURE_END = 0xDA, 0xD9
_FORMATS = ["BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"]
_FIRST_ON_ITS_SIDE = 5  # EXIF orientations from here on swap width and height
_FORMATS_IN_BOXES = ["AVIF", "HEIF"]  # their files begin with a length and "ftyp"
_BEGINNINGS = re.compile(
    rb"(?P<JPEG>\xff\xd8\xff)|(?P<PNG>\x89PNG)|(?P<GIF>GIF8)|(?P<WebP>RIFF....WEBP)|(?P<TIFF>II\*\0|MM\0\*)|"
    rb"(?P<AVIF>....ftypavi[fs])|(?P<HEIC>....ftyp(?:hei|hev|mif1))",
    re.DOTALL,
)


@dataclass(frozen=True, eq=False)
class Photo:
    """An opened photo.

    Attributes
    ----------
    pixels
        (rows, columns, 3) uint8, RGB, turned upright as its EXIF orientation says.
    taken
        The camera's local time, without time zone, where EXIF has it.
    width, height
        Of the upright photo in full.
    format
        "JPEG", "PNG", "HEIF" and so on.
    reduction
        How many times smaller than the photo `pixels` are: 1, or 2, 4 or 8 if few were enough, or if all
        would be more than the limit.
    note
        What could not be read of the photo, if so.
    """

    pixels: npt.NDArray[np.uint8]
    taken: datetime | None
    width: int
    height: int
    format: str
    reduction: int = 1
    _decode_in_full: Callable[[], Photo] | None = field(default=None, repr=False)
    note: str | None = None

    def in_full(self) -> Photo:
        """Return the photo with all the pixels that the limit allows; a reduced one is decoded again."""
        return self if self._decode_in_full is None else self._decode_in_full()

    def in_pixels(self, box: Box) -> Box:
        """Return where a box of the photo in full is in `pixels`."""
        return Box(*(value / self.reduction for value in box))


def open_photo(
    source: str | Path | bytes, *, max_pixels: int = DEFAULT_MAX_PIXELS, enough: int | None = None
) -> Photo:
    """Return the photo in a file or in its bytes; of an animation, the first picture.

    A JPEG that is cut short is decoded as far as it goes, which its `note` says.

    Parameters
    ----------
    source
        A file's path, or its contents.
    max_pixels
        The most pixels that are decoded. A JPEG may hold twice as many, and is decoded at half its size or
        less; other photos that hold more are refused.
    enough
        The longest side that is needed: a JPEG is decoded at a half, a quarter or an eighth of its size, in
        less time, where that leaves so many pixels or more. By default all pixels are decoded. Of a panorama
        it is the side of a part that is `LONGEST_SEARCHED` times as long as wide.

    Raises
    ------
    PhotoError
        When the file is absent, is no photo, cannot be decoded, or holds too many pixels.
    """
    name = "the given image" if isinstance(source, bytes) else _printable(source)
    data = source if isinstance(source, bytes) else _contents(source, name, max_pixels)
    if not data:
        raise PhotoError(f"{name}: the file is empty")
    _quieten_pillow()
    raw = raw_picture(data, name, max_pixels) if is_raw(data) else None
    if raw is not None and raw.developed is not None:
        pixels = rgb_pixels(raw.developed, raw.orientation)
        return Photo(pixels, raw.taken, pixels.shape[1], pixels.shape[0], "RAW")
    file = data if raw is None else raw.preview
    found = _decode(file, name, max_pixels, enough)
    try:
        orientation = read_orientation(found.image, file)
        if raw is not None and orientation == 1:  # most previews are stored as the sensor saw the scene
            orientation = raw.orientation
        pixels = rgb_pixels(found.image, orientation)
    except Exception as error:  # decoders raise whatever they like on damaged data
        raise _damage_error(name, found.kind, error) from error
    taken = taken_at(found.image) or (None if raw is None else raw.taken)
    height, width = pixels.shape[:2]
    if found.reduction > 1:
        width, height = found.size[::-1] if orientation >= _FIRST_ON_ITS_SIDE else found.size
    kind = found.kind if raw is None else "RAW"
    reduced = enough is not None and found.reduction > 1
    in_full = partial(open_photo, data, max_pixels=max_pixels) if reduced else None
    return Photo(pixels, taken, width, height, kind, found.reduction, in_full, found.note)


class _Decoded(NamedTuple):
    """A decoded image, `reduction` times smaller than its `size` in the file, and what is missing of it."""

    image: Image
    kind: str
    size: tuple[int, int]
    reduction: int
    note: str | None


def _decode(data: bytes, name: str, max_pixels: int, enough: int | None) -> _Decoded:
    image = open_image(io.BytesIO(data), name, max_pixels)
    size = columns, rows = image.size
    kind = "JPEG" if image.format == "MPO" else str(image.format)  # MPO: a JPEG with extra pictures
    if columns * rows > max_pixels * (_MAX_HALVED if kind == "JPEG" else 1):
        raise PhotoError(
            f"{name}: {columns} x {rows} pixels are more than the limit of {max_pixels / 1e6:.0f} million"
            f"{' (twice as many in a JPEG)' if kind == 'JPEG' else ''}; "
            "raise max_pixels if the file can be trusted"
        )
    if image.info.get("progressive") and _scans(data) > _MAX_SCANS:
        raise PhotoError(f"{name}: a JPEG of more than {_MAX_SCANS} scans, which takes minutes to decode")
    reduction, note = 1, None
    try:
        if kind == "JPEG":
            reduction = _reduce(image, enough, max_pixels)
        image.load()
    except Exception as error:
        if kind != "JPEG" or isinstance(error, MemoryError):
            raise _damage_error(name, kind, error) from error
        image, note = _decode_truncated(data, name, max_pixels, enough, error)
    return _Decoded(image, kind, size, reduction, note)


def _scans(data: bytes) -> int:
    """Return how many scans a JPEG has; each goes over the whole picture again."""
    at, scans = 2, 0
    while (marker := _MARKER.search(data, at)) is not None and (kind := marker[0][1]) != _PICTURE_END:
        scans += kind == _SCAN
        at = marker.end() + int.from_bytes(data[marker.end() : marker.end() + 2], "big")
    return scans


def _decode_truncated(
    data: bytes, name: str, max_pixels: int, enough: int | None, error: Exception
) -> tuple[Image, str]:
    """Return what can be seen of a JPEG that could not be decoded to its end, and what is missing."""
    for file in complete_jpeg(data):
        with suppress(Exception):  # what is wrong was said by the first attempt
            image = open_image(io.BytesIO(file), name, max_pixels)
            _reduce(image, enough, max_pixels)
            image.load()
            if (note := cut_short_note(image)) is not None:
                return image, note
    raise _damage_error(name, "JPEG", error) from error


def _damage_error(name: str, kind: str, error: Exception) -> PhotoError:
    return PhotoError(f"{name}: damaged or cut short {kind} file ({_reason(error)})")


def _reduce(image: Image, enough: int | None, max_pixels: int) -> int:
    """Let a JPEG be decoded at the smallest size that has `enough` pixels on its longer side."""
    columns, rows = image.size
    share = 1.0 if enough is None else min(1.0, enough / searched_side(columns, rows))
    size = math.ceil(columns * share), math.ceil(rows * share)
    if columns * rows > max_pixels:
        size = min(size[0], max(columns // 2, 1)), min(size[1], max(rows // 2, 1))
    drafted = image.draft(None, size)
    return 1 if drafted is None else round(columns / drafted[1][2])


def searched_side(columns: int, rows: int) -> int:
    """Return the longer side of the largest part of a photo that is searched for faces at once.

    >>> searched_side(4000, 3000), searched_side(30_000, 2000)
    (4000, 6000)
    """
    return min(max(columns, rows), LONGEST_SEARCHED * min(columns, rows))


def _contents(path: str | Path, name: str, max_pixels: int) -> bytes:
    limit = max(max_pixels * _BYTES_PER_PIXEL, _ALWAYS_READ)
    if is_address(path):
        try:
            return read_address(to_address(path), limit)[1]
        except SetNetError as error:
            raise PhotoError(f"{name}: {error}") from None
    with open_file(path, name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise PhotoError(f"{name}: {size / 1e9:.1f} GB are more than any photo within the limit")
        return file.read()


@contextmanager
def open_file(path: str | Path, name: str) -> Iterator[BinaryIO]:
    """Open the file of a photo; what cannot be opened or read in the block is a `PhotoError`."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise PhotoError(f"{name}: is a device or a pipe, not a photo")
            yield file
    except FileNotFoundError:
        raise PhotoError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise PhotoError(f"{name}: is a folder, not a photo") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise PhotoError(f"{name}: cannot be read ({_reason(error)})") from error


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer would block


def format_by_beginning(data: bytes) -> str | None:
    """Return the format of a photo by the first 12 bytes of its file; None if they are of no photo.

    >>> format_by_beginning(b"\\x00\\x00\\x00\\x1cftypavif"), format_by_beginning(b"Dear Anna, the ")
    ('AVIF', None)
    """
    found = _BEGINNINGS.match(data)
    return None if found is None else found.lastgroup


def open_image(file: BinaryIO, name: str, max_pixels: int = DEFAULT_MAX_PIXELS) -> Image:
    """Return an image of which no more than the header was read, if its format allows that."""
    from PIL import Image, UnidentifiedImageError

    formats = _FORMATS
    beginning = file.read(12)
    file.seek(0)
    if beginning[4:8] == b"ftyp":
        import pillow_heif

        pillow_heif.options.DECODE_THREADS = 1  # photos are spread over processes instead
        pillow_heif.register_heif_opener()
        formats = [name for name in _FORMATS_IN_BOXES if Image.init() or name in Image.OPEN]
    _quieten_pillow()
    # Pillow has a limit of its own, for the whole process; ours is checked right after the header.
    if Image.MAX_IMAGE_PIXELS is not None and max_pixels > Image.MAX_IMAGE_PIXELS:
        Image.MAX_IMAGE_PIXELS = max_pixels
    try:
        return Image.open(file, formats=formats)
    except UnidentifiedImageError:
        if kind := format_by_beginning(beginning):
            raise PhotoError(f"{name}: damaged or cut short {kind} file") from None
        raise PhotoError(
            f"{name}: not a photo in a format setnet reads (JPEG, PNG, WebP, TIFF, BMP, GIF, HEIC, AVIF, "
            "raw), or its beginning is damaged"
        ) from None
    except Image.DecompressionBombError:
        raise PhotoError(
            f"{name}: holds more than the limit of {max_pixels / 1e6:.0f} million pixels"
        ) from None
    except Exception as error:
        raise _damage_error(name, format_by_beginning(beginning) or "photo", error) from error


@cache
def _quieten_pillow() -> None:
    # It warns of sizes and of damaged EXIF; what matters of that is a PhotoError.
    warnings.filterwarnings("ignore", module=r"PIL\.")


def _printable(path: str | Path) -> str:
    """Return the path as text that any terminal takes, also when its name is no valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
