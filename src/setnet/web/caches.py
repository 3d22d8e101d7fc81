"""What the server keeps in memory between requests: uploaded faces, photos by date, rankings for next pages.

A cursor names the next page of a ranking; cursors are sealed, so that only this server's own are accepted.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import struct
import threading
from array import array
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from setnet.errors import InvalidInputError
from setnet.library import Conditions, Example, Library, PhotoQuery, Ranking
from setnet.web.problems import Problem

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MOST_FACES = 4096
_MOST_TIMELINES = 8
_PLACE = struct.Struct(">IQ")
_SEAL = 16


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


class RankingCache(_Cache[tuple[bytes, int], tuple[Library, Ranking]]):
    """Rankings by their query's digest and the library's commit; the weight is in bytes."""

    def keep(self, digest: bytes, library: Library, ranking: Ranking) -> None:
        """Keep a ranking from now on, and let go of what would be too much with it."""
        self._put((digest, ranking.commit), (library, ranking), ranking.nbytes)

    def get(self, digest: bytes, commit: int, library: Library) -> Ranking | None:
        """Return the ranking of a query on a library as of a commit, if it is still kept."""
        found, ranking = self._value((digest, commit)) or (None, None)
        return ranking if found is library else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The ids of photos, the latest taken first, and how many each month has; None is no known time."""

    ids: array[int]
    months: tuple[tuple[str | None, int], ...]


class TimelineCache:
    """Sorts the photos once for all requests with the same conditions between two changes of the library."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, Timeline] = OrderedDict()

    def of(
        self, library: Library, conditions: Conditions | None = None, without: Sequence[str] = ()
    ) -> Timeline:
        """Return the photos that meet conditions now, with nobody in them of those who must not be."""
        key = (library.path, library.photos.commit(), conditions, tuple(without))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = _timeline(library, conditions, without)
                if len(self._kept) > _MOST_TIMELINES:
                    self._kept.popitem(last=False)
            return self._kept[key]


def _timeline(library: Library, conditions: Conditions | None, without: Sequence[str]) -> Timeline:
    left_out: set[int] = set()
    for person in without:
        everything = max(1, len(library.set_index))
        hits = library.find(PhotoQuery([library.person(person)], k=everything)).hits
        left_out |= {int(hit.photo.id) for hit in hits}
    dated = [one for one in library.photos.by_date(conditions) if one[0] not in left_out]
    months = tuple((month, len(list(those))) for month, those in groupby(dated, lambda one: one[1]))
    return Timeline(array("q", (photo for photo, _ in dated)), months)


class Place(NamedTuple):
    """Where a page begins, and the library's commit that its answer was ranked at."""

    offset: int
    commit: int


class Cursors:
    """Writes and reads the cursors of one server.

    A cursor names a place in the answer to one query, and nothing that is not in that answer: its seal
    covers the query, so that it fits no other, and is made with a key that no client has.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def at(self, place: Place, digest: bytes) -> str:
        """Return the cursor for a page.

        >>> cursors = Cursors()
        >>> cursors.place_in(cursors.at(Place(50, 7), b"query"), b"query")
        Place(offset=50, commit=7)
        """
        packed = _PLACE.pack(*place)
        return base64.urlsafe_b64encode(packed + self._seal(packed, digest)).decode()

    def place_in(self, cursor: str, digest: bytes) -> Place:
        """Return the place in a cursor of the same query; another one is an error."""
        try:
            data = base64.b64decode(cursor.encode(), b"-_", validate=True)
        except (binascii.Error, ValueError):
            data = b""
        packed, seal = data[: _PLACE.size], data[_PLACE.size :]
        if not secrets.compare_digest(seal, self._seal(packed, digest)):
            raise InvalidInputError(
                "the cursor does not belong to this query, or comes from before the server's last start: "
                "leave it out to start again"
            )
        return Place._make(_PLACE.unpack(packed))

    def _seal(self, packed: bytes, digest: bytes) -> bytes:
        return blake2b(packed + digest, key=self._key, digest_size=_SEAL).digest()
