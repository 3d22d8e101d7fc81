"""The two things setnet reads from EXIF: how the camera was held and when the photo was taken."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["orientation_of", "taken_at"]

_ORIENTATION, _CHANGED = 0x0112, 0x0132
_CAMERA_PART, _TAKEN, _DIGITISED = 0x8769, 0x9003, 0x9004
_DATE = re.compile(r"\s*(\d{4})\D(\d{1,2})\D(\d{1,2})\D+(\d{1,2})\D(\d{1,2})(?:\D(\d{1,2}))?")


def orientation_of(image: Image) -> int:
    """Return the EXIF orientation, 1 to 8; 1 (upright) where there is none or it makes no sense."""
    try:
        value = int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # damaged EXIF must not cost the photo
        return 1
    return value if 1 <= value <= 8 else 1


def taken_at(image: Image) -> datetime | None:
    """Return when the photo was taken, by the camera's clock; None where EXIF does not say."""
    try:
        exif = image.getexif()
        camera = exif.get_ifd(_CAMERA_PART)
        texts = [camera.get(_TAKEN), camera.get(_DIGITISED), exif.get(_CHANGED)]
    except Exception:  # damaged EXIF must not cost the photo
        return None
    return next((time for time in map(_parsed, texts) if time is not None), None)


def _parsed(value: object) -> datetime | None:
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value or "")
    match = _DATE.match(text)
    if match is None:
        return None
    try:
        return datetime(*(int(part or 0) for part in match.groups()))  # type: ignore[arg-type]
    except ValueError:  # cameras without a set clock write zeros
        return None
