"""Reads orientation and time of a photo from its EXIF data."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_ORIENTATION, _CHANGED = 0x0112, 0x0132
_CAMERA_PART, _TAKEN, _DIGITISED = 0x8769, 0x9003, 0x9004
_DATE = re.compile(r"\s*(\d{4})\D(\d{1,2})\D(\d{1,2})\D+(\d{1,2})\D(\d{1,2})(?:\D(\d{1,2}))?")


def read_orientation(image: Image, data: bytes) -> int:
    """Return how the decoded image is still to be turned, as an EXIF orientation from 1 (not) to 8."""
    try:
        value = int(image.getexif().get(_ORIENTATION, 1))
        if image.format == "HEIF" and not _is_turned_by_container(data):
            value = int(image.info.get("original_orientation") or 1)
    except Exception:  # damaged EXIF must not cost the photo
        return 1
    return value if 1 <= value <= 8 else 1


def stored_orientation(image: Image) -> int:
    """Return how the picture in the file is turned, by EXIF; also where a decoder turned it upright."""
    try:
        value = int(image.info.get("original_orientation") or image.getexif().get(_ORIENTATION, 1))
    except Exception:  # damaged EXIF must not cost the photo
        return 1
    return value if 1 <= value <= 8 else 1


def _is_turned_by_container(data: bytes) -> bool:
    """Return whether a HEIF file itself says how to turn it, in which case its decoder did so.

    Several converters copy EXIF and write no such instruction; then only EXIF says it.
    """
    at = 0
    while at + 8 <= len(data):
        length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if name == b"meta":
            return b"irot" in data[at : at + length] or b"imir" in data[at : at + length]
        if length == 1:
            length = int.from_bytes(data[at + 8 : at + 16], "big")
        at += max(length, 8)
    return True


def taken_at(image: Image) -> datetime | None:
    """Return when the photo was taken, by the camera's clock; None where EXIF does not say."""
    try:
        exif = image.getexif()
        camera = exif.get_ifd(_CAMERA_PART)
        texts = [camera.get(_TAKEN), camera.get(_DIGITISED), exif.get(_CHANGED)]
    except Exception:  # damaged EXIF must not cost the photo
        return None
    return next((time for time in map(_parse_time, texts) if time is not None), None)


def _parse_time(value: object) -> datetime | None:
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value or "")
    match = _DATE.match(text)
    if match is None:
        return None
    try:
        return datetime(*(int(part or 0) for part in match.groups()))  # type: ignore[arg-type]
    except ValueError:  # cameras without a set clock write zeros
        return None
