"""What the server keeps in memory: uploaded faces, photos by date, rankings for next pages."""

from __future__ import annotations

import secrets
import threading
from array import array
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from time import monotonic
from typing import Generic, TypeVar

from setnet.library import Conditions, Example, Library, PhotoQuery, Ranking
from setnet.library.stacks import find_stacks
from setnet.web.problems import Problem

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MOST_FACES = 4096
_MOST_TIMELINES = 8


class _Cache(Generic[K, V]):
    """Values for so many seconds and of so much weight in all; those put in the longest ago go first."""

    def __init__(self, seconds: float, most: int) -> None:
        self.seconds, self._most = seconds, most
        self._kept: OrderedDict[K, tuple[float, int, V]] = OrderedDict()
        self._lock = threading.Lock()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._kept)

    def _put(self, key: K, value: V, weight: int) -> None:
        with self._lock:
            self._drop(key)
            self._kept[key] = monotonic() + self.seconds, weight, value
            self.weight += weight
            self._drop_old()
            while self.weight > self._most:
                self._drop(next(iter(self._kept)))

    def _value(self, key: K) -> V | None:
        with self._lock:
            self._drop_old()
            kept = self._kept.get(key)
        return None if kept is None else kept[2]

    def drop_old(self) -> None:
        """Let go of the values whose time is over."""
        with self._lock:
            self._drop_old()

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()
            self.weight = 0

    def _drop_old(self) -> None:
        now = monotonic()
        while self._kept and next(iter(self._kept.values()))[0] <= now:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: K) -> None:
        if (gone := self._kept.pop(key, None)) is not None:
            self.weight -= gone[1]


class UploadedFaces(_Cache[str, Example]):
    """Faces by a short-lived id; the oldest go first when there are many."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds, _MOST_FACES)

    def add(self, face: Example) -> str:
        """Remember a face and return its id."""
        face_id = f"f-{secrets.token_urlsafe(12)}"
        self._put(face_id, face, 1)
        return face_id

    def get(self, face_id: str) -> Example:
        """Return a face; one that is too old is an error that says what to do."""
        if (face := self._value(face_id)) is None:
            raise Problem(
                404,
                f"no face {face_id[:40]!r}: ids are kept for {self.seconds / 60:.0f} minutes after "
                "POST /faces; upload the photo again",
            )
        return face


class RankingCache(_Cache[tuple[str, int], tuple[Library, Ranking]]):
    """Rankings by their query's digest and the library's commit; the weight is in bytes."""

    def keep(self, digest: str, library: Library, ranking: Ranking) -> None:
        """Keep a ranking from now on, and let go of what would be too much with it."""
        self._put((digest, ranking.commit), (library, ranking), ranking.nbytes)

    def get(self, digest: str, commit: int, library: Library) -> Ranking | None:
        """Return the ranking of a query on a library as of a commit, if it is still kept."""
        found, ranking = self._value((digest, commit)) or (None, None)
        return ranking if found is library else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The ids of photos, the latest taken first, and how many each month has; None is no known time.

    In a collapsed one a photo stands for copies and bursts: `stacks` has the ids of these by its own.
    """

    ids: array[int]
    months: tuple[tuple[str | None, int], ...]
    stacks: dict[int, list[int]]


class TimelineCache(_Cache[object, Timeline]):
    """Sorts the photos once for all requests with the same conditions between two changes of the library."""

    def __init__(self) -> None:
        super().__init__(inf, _MOST_TIMELINES)
        self._sorting = threading.Lock()

    def of(
        self,
        library: Library,
        conditions: Conditions | None = None,
        without: Sequence[str] = (),
        collapse: bool = False,
    ) -> Timeline:
        """Return the photos that meet conditions now, with nobody in them of those who must not be."""
        key = (library.path, library.photos.commit(), conditions, tuple(without), collapse)
        with self._sorting:  # what a page asks for twice at once is sorted once
            if (timeline := self._value(key)) is None:
                timeline = _timeline(library, conditions, without, collapse)
                self._put(key, timeline, 1)
            return timeline


def _timeline(
    library: Library, conditions: Conditions | None, without: Sequence[str], collapse: bool
) -> Timeline:
    left_out: set[int] = set()
    for person in without:
        everything = max(1, len(library.set_index))
        hits = library.search(PhotoQuery([library.person(person)], k=everything)).hits
        left_out |= {int(hit.photo.id) for hit in hits}
    dated = [row for row in library.photos.by_date(conditions) if row[0] not in left_out]
    stacks: dict[int, list[int]] = {}
    if collapse:
        found = find_stacks([moment for _, _, moment in dated])
        stacks = {dated[first][0]: [dated[n][0] for n in rest] for first, *rest in found if rest}
        dated = [dated[first] for first, *_ in found]
    months = tuple((month, len(list(those))) for month, those in groupby(dated, lambda row: row[1]))
    return Timeline(array("q", (row[0] for row in dated)), months, stacks)
