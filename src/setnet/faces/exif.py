"""Reads orientation, time and the camera's settings of a photo from its EXIF data."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_ORIENTATION, _CHANGED = 0x0112, 0x0132
_EXIF_IFD, _TAKEN, _DIGITISED = 0x8769, 0x9003, 0x9004
_MAKER, _MODEL, _LENS = 0x010F, 0x0110, 0xA434
_EXPOSURE, _APERTURE, _SENSITIVITY, _FOCAL_LENGTH = 0x829A, 0x829D, 0x8827, 0x920A
_GPS_IFD, _LATITUDE, _LONGITUDE = 0x8825, 2, 4
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
        camera = exif.get_ifd(_EXIF_IFD)
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


def read_camera(image: Image) -> dict[str, str | float]:
    """Return what EXIF tells of the camera, its settings and the place: what is absent is left out."""
    try:
        exif = image.getexif()
        camera, place = exif.get_ifd(_EXIF_IFD), exif.get_ifd(_GPS_IFD)
    except Exception:  # damaged EXIF is no EXIF
        return {}
    maker, model = _text(exif.get(_MAKER)), _text(exif.get(_MODEL))
    is_repeated = model.lower().startswith(maker.lower().partition(" ")[0])
    found: dict[str, str | float | None] = {
        "camera": model if is_repeated else f"{maker} {model}".strip(),
        "lens": _text(camera.get(_LENS)),
        "exposure": _number(camera.get(_EXPOSURE)),
        "aperture": _number(camera.get(_APERTURE)),
        "iso": _number(camera.get(_SENSITIVITY)),
        "focal_length": _number(camera.get(_FOCAL_LENGTH)),
    }
    facts = {name: value for name, value in found.items() if value}
    latitude, longitude = (_degrees(place.get(key), place.get(key - 1)) for key in (_LATITUDE, _LONGITUDE))
    if latitude is not None and longitude is not None and abs(latitude) <= 90 and abs(longitude) <= 180:
        facts |= {"latitude": latitude, "longitude": longitude}
    return facts


def _text(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
    return "".join(each for each in text if each.isprintable()).strip()[:100]


def _number(value: object) -> float | None:
    """Return a positive number, the first of several."""
    try:
        number = float(value[0] if isinstance(value, tuple) else value)  # type: ignore[arg-type]
    except Exception:  # a fraction by zero, a text, nothing
        return None
    return number if 0 < number < 1e6 else None


def _degrees(value: object, side: object) -> float | None:
    try:
        degrees, minutes, seconds = (float(part) for part in value)  # type: ignore[attr-defined]
    except Exception:  # no three fractions
        return None
    found = degrees + minutes / 60 + seconds / 3600
    if not math.isfinite(found):
        return None
    return round(-found if _text(side)[:1].upper() in ("S", "W") else found, 6)
