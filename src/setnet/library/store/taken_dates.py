"""When a photo was taken, where EXIF does not say: by the file's name, or by its time on the disk."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime

# 20190704, 2019-07-04 or 2019_07_04, and after it 123456, 12.34.56 or "at 12-34-56", if anything.
_DATE = r"(?<!\d)(19[89]\d|20\d\d)([-_.]?)(\d\d)\2(\d\d)"
_TIME = r"(?:[-_. T]*(?:at )?(\d\d)([-_.:h]?)(\d\d)\6(\d\d)(?:\d{3})?)?(?!\d)"
_IN_NAME = re.compile(f"{_DATE}{_TIME}")
_DATE_ONLY = re.compile(rf"{_DATE}(?!\d)")
_FIRST_YEAR = 1990  # files without a time of their own have one long before


def dated(path: bytes, taken: float | None, mtime_ns: int) -> tuple[float | None, str | None]:
    """Return when a file's photo was taken, as a number, and where that is from.

    `taken` is what the camera wrote, which nothing is better than (None); else it is `name` or `file`,
    and None where nothing tells.
    """
    if taken is not None:
        return taken, None
    name = os.fsdecode(os.path.basename(path))
    for source, time in (("name", date_in_name(name)), ("file", _file_time(mtime_ns))):
        if time is not None:
            return time.replace(tzinfo=UTC).timestamp(), source
    return None, None


def date_in_name(name: str) -> datetime | None:
    """Return the date, with the time if there is one, that a camera or a program put into a file's name.

    >>> date_in_name("IMG_20190704_123456.jpg"), date_in_name("2019-07-04 12.34.56.jpg")
    (datetime.datetime(2019, 7, 4, 12, 34, 56), datetime.datetime(2019, 7, 4, 12, 34, 56))
    >>> date_in_name("IMG-20190704-WA0001.jpg")
    datetime.datetime(2019, 7, 4, 0, 0)
    """
    stem = os.path.splitext(name)[0]
    for pattern in (_IN_NAME, _DATE_ONLY):
        for found in pattern.finditer(stem):
            year, _, month, day, *time = found.groups()
            hour, minute, second = (time[0], time[2], time[3]) if time and time[0] else (0, 0, 0)
            try:
                return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
            except ValueError:  # digits that are no date, or no time
                continue
    return None


def _file_time(mtime_ns: int) -> datetime | None:
    try:
        time = datetime.fromtimestamp(mtime_ns // 10**9)
    except (OverflowError, OSError, ValueError):
        return None
    return time if time.year >= _FIRST_YEAR else None
