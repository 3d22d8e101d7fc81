"""Conditions on photos (time, folder, number of faces, photo or video), checked inside the engine's scan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from setnet.errors import InvalidInputError, one_of
from setnet.library.paths import folder_text, resolve_path
from setnet.library.photo_catalog import PhotoCatalog, taken_number
from setnet.wording import counted

KINDS = ("photo", "video")

FaceRange = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Which photos a query may return.

    Attributes
    ----------
    after, before
        Taken at `after` or later, and earlier than `before`, by the camera's clock, or by the file's name or
        time where EXIF has none; photos without a known time meet neither.
    folder
        In this folder or below it.
    faces
        Smallest and largest number of faces, either may be None.
    kind
        `photo`, or `video` for shots of videos; None for both.
    """

    after: datetime | None = None
    before: datetime | None = None
    folder: str | None = None
    faces: FaceRange | None = None
    kind: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in (None, *KINDS):
            raise one_of("kind", self.kind, KINDS)

    @classmethod
    def parse(
        cls,
        after: str | None = None,
        before: str | None = None,
        folder: str | None = None,
        faces: str | FaceRange | None = None,
        kind: str | None = None,
    ) -> Conditions:
        """Return conditions from text, as `date_from` and `face_range_from` read it; empty means none.

        >>> Conditions.parse(after="2019-07", faces="4+")
        Conditions(after=datetime.datetime(2019, 7, 1, 0, 0), before=None, folder=None, faces=(4, None),
         kind=None)
        """
        return cls(
            after=date_from(after) if after else None,
            before=date_from(before) if before else None,
            folder=folder or None,
            faces=face_range_from(faces) if isinstance(faces, str) else faces,
            kind=kind or None,
        )

    def where(self) -> dict[str, Any] | None:
        """Return the conditions as the index takes them, or None if there are none."""
        where: dict[str, Any] = {}
        taken = _range(taken_number(self.after), "<", taken_number(self.before))
        if taken:
            where["taken"] = taken
        if self.faces is not None and (count := _range(self.faces[0], "<=", self.faces[1])):
            where["faces"] = count
        if self.folder is not None:
            where["folder"] = {"prefix": folder_text(resolve_path(self.folder))}
        if self.kind == "video":
            where["kind"] = self.kind
        return where or None

    def left_out(self, catalog: PhotoCatalog) -> set[str]:
        """Return the photos that conditions exclude and `where` cannot: items without an attribute meet none.

        Only shots have an attribute that says what they are.
        """
        return catalog.shot_ids() if self.kind == "photo" else set()

    def __str__(self) -> str:
        """Return the conditions in words; empty if there are none.

        >>> str(Conditions.parse(after="2019-07", faces="4+", kind="photo"))
        'taken from 2019-07-01 on, with 4 faces or more, photos only'
        """
        least, most = self.faces or (None, None)
        said = {
            f"taken from {_day(self.after)} on": self.after,
            f"taken before {_day(self.before)}": self.before,
            f"in {self.folder}": self.folder,
            f"with {counted(least or 0, 'face')} or more": least,
            f"with {counted(most or 0, 'face')} at most": most,
            f"{self.kind}s only": self.kind,
        }
        return ", ".join(text for text, value in said.items() if value is not None)

    def unmet_by(self, catalog: PhotoCatalog) -> list[str]:
        """Return why no photo of the library can meet the conditions; empty if one may."""
        counts, why = catalog.counts(), []
        if (self.after or self.before) and not counts.timed:
            why.append("no photo in this library has a known time: a condition on the time finds nothing")
        if self.kind == "video" and not counts.shots:
            why.append("no video is in this library: looking in videos only finds nothing")
        return why


def _day(time: datetime | None) -> str:
    return "" if time is None else time.isoformat(" ", "minutes").removesuffix(" 00:00")


def _range(low: float | None, below: str, high: float | None) -> dict[str, float]:
    limits = {">=": low, below: high}
    return {sign: value for sign, value in limits.items() if value is not None}


_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")


def date_from(text: str) -> datetime:
    """Return the beginning of a year, month or day, or an exact time.

    >>> date_from("2019"), date_from("2019-07"), date_from("2019-07-14 18:30")
    (datetime.datetime(2019, 1, 1, 0, 0), datetime.datetime(2019, 7, 1, 0, 0),
     datetime.datetime(2019, 7, 14, 18, 30))
    """
    try:
        if parts := _DATE.fullmatch(text.strip()):
            year, month, day = (int(p or 1) for p in parts.groups())
            return datetime(year, month, day)
        return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        raise InvalidInputError(
            f"{text!r} is not a date: write 2019, 2019-07, 2019-07-14 or 2019-07-14T18:30"
        ) from None


_FACES = re.compile(r"(\d{1,6})(?:(\+)|-(\d{1,6}))?")


def face_range_from(text: str) -> FaceRange:
    """Return the limits of a number of faces: `3` exactly, `2-5` a range, `4+` that many or more.

    >>> face_range_from("3"), face_range_from("2-5"), face_range_from("4+")
    ((3, 3), (2, 5), (4, None))
    """
    parts = _FACES.fullmatch(text.strip())
    if parts is None:
        raise InvalidInputError(f"{text!r} is not a number of faces: write 3, 2-5 or 4+")
    low = int(parts[1])
    high = None if parts[2] else int(parts[3] or low)
    if high is not None and high < low:
        raise InvalidInputError(f"{text!r} faces: the first number is the smaller one")
    return low, high
