"""Raw files of cameras, read through the JPEG preview that the camera put into them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from setnet.errors import PhotoError

if TYPE_CHECKING:
    import rawpy
    from PIL.Image import Image

RAW_FORMATS = "3fr arw cr2 cr3 crw dcr dng erf kdc mef mos mrw nef nrw orf pef raf rw2 rwl sr2 srf srw x3f"
RAW_NEEDS = "a raw file of a camera, for which `pip install 'setnet[raw]'` is needed"

_BEGINNINGS = (b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"MMOR", b"IIU\0", b"FOVb", b"\0MRM")
_TIFF = (b"II*\0", b"MM\0*")
_MAKER, _PARTS, _DNG, _COMPRESSION = 0x010F, 0x014A, 0xC612, 0x0103
_OWN_COMPRESSIONS = (32767, 32769, 32770, 34713, 65000, 65535)  # Sony, Epson, Samsung, Nikon, Kodak, Pentax
_LARGE_ENOUGH = 1000  # pixels on the longer side; smaller previews are for a camera's display
_ORIENTATIONS = {0: 1, 3: 3, 5: 8, 6: 6}  # LibRaw's turns as EXIF orientations


@dataclass(frozen=True, eq=False)
class RawPicture:
    """The picture of a raw file, how it is to be turned, and when it was taken.

    It is the `preview`, a JPEG file, unless it had to be `developed` from the sensor's values.
    """

    preview: bytes
    developed: Image | None
    orientation: int
    taken: datetime | None


@cache
def can_read_raw() -> bool:
    """Return whether the library for raw files is installed."""
    return find_spec("rawpy") is not None


def is_raw(data: bytes) -> bool:
    """Return whether a file is a raw one by its contents; most are TIFF files with a maker's own parts."""
    if data.startswith(_BEGINNINGS) or data[4:12] == b"ftypcrx " or data[6:14] == b"HEAPCCDR":
        return True  # those in the middle: Canon's CR3 and CRW
    return data.startswith(_TIFF) and (_is_cr2(data) or _is_makers_tiff(data))


def _is_cr2(data: bytes) -> bool:
    return data[8:10] == b"CR"


def _is_makers_tiff(data: bytes) -> bool:
    from PIL import Image

    try:
        tags = Image.Exif()
        tags.load(data)
        if _DNG in tags:
            return True
        return _MAKER in tags and (_PARTS in tags or tags.get(_COMPRESSION) in _OWN_COMPRESSIONS)
    except Exception:  # damaged tags: the TIFF decoder says what is wrong
        return False


def raw_picture(data: bytes, name: str, max_pixels: int) -> RawPicture | None:
    """Return the preview in a raw file or, where that is small, the picture itself.

    A large picture is developed at half its size. None is for a TIFF file that only looks like a raw one.
    """
    if not can_read_raw():
        raise PhotoError(f"{name}: {RAW_NEEDS}")
    import rawpy
    from PIL.Image import fromarray

    try:
        with rawpy.imread(io.BytesIO(data)) as raw:
            orientation = _ORIENTATIONS.get(raw.sizes.flip, 1)
            stored = raw.other.timestamp
            taken = stored if stored is not None and stored.year > 1970 else None
            preview = _preview(raw)
            if preview:
                return RawPicture(preview, None, orientation, taken)
            size = raw.sizes.width, raw.sizes.height
            if size[0] * size[1] > max_pixels:
                raise PhotoError(
                    f"{name}: holds more than the limit of {max_pixels / 1e6:.0f} million pixels"
                )
            pixels = raw.postprocess(
                half_size=max(size) > 2 * _LARGE_ENOUGH, use_camera_wb=True, user_flip=0, output_bps=8
            )
            return RawPicture(b"", fromarray(pixels), orientation, taken)
    except rawpy.LibRawFileUnsupportedError:
        if data.startswith(_TIFF) and not _is_cr2(data):
            return None
        raise PhotoError(f"{name}: a raw file of a camera that LibRaw does not know") from None
    except (rawpy.LibRawError, ValueError) as error:
        reason = error.args[0] if error.args else type(error).__name__
        text = reason.decode("ascii", "replace") if isinstance(reason, bytes) else str(reason)
        raise PhotoError(f"{name}: damaged or cut short raw file ({text})") from error


def _preview(raw: rawpy.RawPy) -> bytes:
    """Return the JPEG file of the preview; nothing if it is too small to find faces in."""
    import rawpy
    from PIL import Image

    try:
        found = raw.extract_thumb()
        if found.format != rawpy.ThumbFormat.JPEG:
            return b""
        data = bytes(found.data)
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as image:
            return data if max(image.size) >= _LARGE_ENOUGH else b""
    except (rawpy.LibRawError, OSError, ValueError):
        return b""
