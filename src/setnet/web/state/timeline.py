"""The photos of the library by date, kept until the library changes."""

from __future__ import annotations

import threading
from array import array
from dataclasses import dataclass
from itertools import groupby

from setnet.library import Library


@dataclass(frozen=True, slots=True)
class Timeline:
    """The ids of all photos, the latest taken first, and how many each month has; None is no known time."""

    ids: array[int]
    months: tuple[tuple[str | None, int], ...]


class KeptTimeline:
    """Sorts the photos once for all requests between two changes of the library."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[object, Timeline] | None = None

    def of(self, library: Library) -> Timeline:
        """Return the timeline of a library as it is now."""
        version = (library.path, library.catalog.commit())
        with self._lock:
            if self._kept is None or self._kept[0] != version:
                dated = library.catalog.by_date()
                months = tuple(
                    (month, len(list(those))) for month, those in groupby(dated, lambda one: one[1])
                )
                self._kept = (version, Timeline(array("q", (photo for photo, _ in dated)), months))
            return self._kept[1]
