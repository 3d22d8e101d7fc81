"""Reads what stands before the pixels of a photo: its XMP packet and how it is turned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from setnet.errors import PhotoError
from setnet.faces.photo.exif import stored_orientation
from setnet.faces.photo.photo import opened, opened_file


class PhotoHeader(NamedTuple):
    """The XMP packet in a photo (None where there is none), and its EXIF orientation from 1 to 8."""

    xmp: bytes | None
    orientation: int


def read_header(path: str | Path) -> PhotoHeader:
    """Return what stands before the pixels of a photo, without decoding these; `PhotoError` for no photo."""
    name = os.fsencode(path).decode("utf-8", "replace")
    with opened_file(path, name) as file, opened(file, name) as image:
        try:
            xmp = image.info.get("xmp")
            orientation = stored_orientation(image)
        except Exception as error:  # decoders raise whatever they like on damaged data
            raise PhotoError(f"{name}: damaged file ({error})") from error
    if isinstance(xmp, str):
        xmp = xmp.encode("utf-8", "surrogateescape")
    return PhotoHeader(xmp if isinstance(xmp, bytes) else None, orientation)
