"""Opens photos of any common format as upright RGB pixels, and refuses broken ones clearly."""

from __future__ import annotations

import io
import math
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from setnet.addresses import address_of, is_address, read_address
from setnet.errors import PhotoError, SetNetError
from setnet.faces.photo.exif import orientation_of, taken_at
from setnet.faces.photo.pixels import rgb_pixels

if TYPE_CHECKING:
    from PIL.Image import Image

DEFAULT_MAX_PIXELS = 128_000_000  # 384 MB decoded; phones and cameras stay below
_BYTES_PER_PIXEL = 16  # of the most wasteful file: uncompressed, four channels of 32 bits
_ALWAYS_READ = 1 << 28  # small enough to look inside and say how many pixels there are
# Only photo formats: the fewer decoders an untrusted file can reach, the better.
_FORMATS = ["BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"]
_FIRST_ON_ITS_SIDE = 5  # EXIF orientations from here on swap width and height
_FORMATS_IN_BOXES = ["AVIF", "HEIF"]  # their files begin with a length and "ftyp"


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
        How many times smaller than the photo `pixels` are: 1, or 2, 4 or 8 if few were enough.
    """

    pixels: npt.NDArray[np.uint8]
    taken: datetime | None
    width: int
    height: int
    format: str
    reduction: int = 1
    _decode_in_full: Callable[[], Photo] | None = field(default=None, repr=False)

    def in_full(self) -> Photo:
        """Return the photo with all its pixels; a reduced one is decoded again."""
        return self if self._decode_in_full is None else self._decode_in_full()


def open_photo(
    source: str | Path | bytes, *, max_pixels: int = DEFAULT_MAX_PIXELS, enough: int | None = None
) -> Photo:
    """Return the photo in a file or in its bytes; of an animation, the first picture.

    Parameters
    ----------
    source
        A file's path, or its contents.
    max_pixels
        Photos that hold more are refused, also if fewer of them would be decoded.
    enough
        The longest side that is needed: a JPEG is decoded at a half, a quarter or an eighth of its size, in
        less time, where that leaves so many pixels or more. By default all pixels are decoded.

    Raises
    ------
    PhotoError
        When the file is absent, is no photo, is cut short, or holds more than `max_pixels`.
    """
    name = "the given image" if isinstance(source, bytes) else _printable(source)
    data = source if isinstance(source, bytes) else _contents(source, name, max_pixels)
    if not data:
        raise PhotoError(f"{name}: the file is empty")
    image = opened(io.BytesIO(data), name, max_pixels)
    columns, rows = image.size
    if columns * rows > max_pixels:
        raise PhotoError(
            f"{name}: {columns} x {rows} pixels are more than the limit of {max_pixels / 1e6:.0f} million; "
            "raise max_pixels if the file can be trusted"
        )
    kind = "JPEG" if image.format == "MPO" else str(image.format)  # MPO: a JPEG with extra pictures
    try:
        reduction = _reduced(image, enough) if enough is not None and kind == "JPEG" else 1
        image.load()
        orientation = orientation_of(image, data)
        pixels = rgb_pixels(image, orientation)
    except Exception as error:  # decoders raise whatever they like on damaged data
        raise PhotoError(f"{name}: damaged or cut short {kind} file ({_reason(error)})") from error
    if reduction == 1:
        return Photo(pixels, taken_at(image), pixels.shape[1], pixels.shape[0], kind)
    width, height = (rows, columns) if orientation >= _FIRST_ON_ITS_SIDE else (columns, rows)
    in_full = partial(open_photo, data, max_pixels=max_pixels)
    return Photo(pixels, taken_at(image), width, height, kind, reduction, in_full)


def _reduced(image: Image, enough: int) -> int:
    """Let a JPEG be decoded at the smallest size that has `enough` pixels on its longer side."""
    columns, rows = image.size
    share = min(1.0, enough / max(columns, rows))
    drafted = image.draft(None, (math.ceil(columns * share), math.ceil(rows * share)))
    return 1 if drafted is None else round(columns / drafted[1][2])


def _contents(path: str | Path, name: str, max_pixels: int) -> bytes:
    limit = max(max_pixels * _BYTES_PER_PIXEL, _ALWAYS_READ)
    if is_address(path):
        try:
            return read_address(address_of(path), limit)[1]
        except SetNetError as error:
            raise PhotoError(f"{name}: {error}") from None
    with opened_file(path, name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise PhotoError(f"{name}: {size / 1e9:.1f} GB are more than any photo within the limit")
        return file.read()


@contextmanager
def opened_file(path: str | Path, name: str) -> Iterator[BinaryIO]:
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


def opened(file: BinaryIO, name: str, max_pixels: int = DEFAULT_MAX_PIXELS) -> Image:
    """Return an image of which no more than the header was read, if its format allows that."""
    from PIL import Image, UnidentifiedImageError

    formats = _FORMATS
    beginning = file.read(8)
    file.seek(0)
    if beginning[4:] == b"ftyp":
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
        raise PhotoError(
            f"{name}: not a photo in a format setnet reads (JPEG, PNG, WebP, TIFF, BMP, GIF, HEIC, AVIF), "
            "or its beginning is damaged"
        ) from None
    except Image.DecompressionBombError:
        raise PhotoError(
            f"{name}: holds more than the limit of {max_pixels / 1e6:.0f} million pixels"
        ) from None
    except Exception as error:
        raise PhotoError(f"{name}: damaged file ({_reason(error)})") from error


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
