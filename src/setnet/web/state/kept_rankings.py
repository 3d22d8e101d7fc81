"""Rankings of answers, kept for a while so that their next pages need no search."""

from __future__ import annotations

import threading
from collections import OrderedDict
from time import monotonic
from typing import NamedTuple

from setnet.library import Library, Ranking

Key = tuple[bytes, int]  # the query's digest, and the library's commit that was searched


class _Kept(NamedTuple):
    until: float
    library: Library
    ranking: Ranking
    nbytes: int


class KeptRankings:
    """Rankings in memory, of so many bytes and for so many seconds after their last use at most.

    When they are too many, those that nobody asked for the longest go first.
    """

    def __init__(self, seconds: float, most_bytes: int) -> None:
        self._seconds, self._most = seconds, most_bytes
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, digest: bytes, library: Library, ranking: Ranking) -> None:
        """Keep a ranking from now on, and let go of what would be too much with it."""
        with self._lock:
            self._drop((digest, ranking.commit))
            kept = _Kept(monotonic() + self._seconds, library, ranking, ranking.nbytes)
            self._kept[digest, ranking.commit] = kept
            self.nbytes += kept.nbytes
            self._drop_old()
            while self.nbytes > self._most:
                self._drop(next(iter(self._kept)))

    def get(self, digest: bytes, commit: int, library: Library) -> Ranking | None:
        """Return the ranking of a query on a library as of a commit, if it is still kept."""
        with self._lock:
            self._drop_old()
            kept = self._kept.get((digest, commit))
        return kept.ranking if kept is not None and kept.library is library else None

    def clear(self) -> None:
        """Let go of all rankings."""
        with self._lock:
            self._kept.clear()
            self.nbytes = 0

    def _drop_old(self) -> None:
        now = monotonic()
        while self._kept and next(iter(self._kept.values())).until <= now:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        if (gone := self._kept.pop(key, None)) is not None:
            self.nbytes -= gone.nbytes
