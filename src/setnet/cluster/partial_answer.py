"""What a cluster answers with, where it says more than one index does."""

from __future__ import annotations

from collections.abc import Iterable

from setnet.index import Hit


class Hits(list[Hit]):
    """The hits of a search, best first, and the shards that did not answer.

    ``missing`` is empty unless the search allowed a partial answer.
    """

    def __init__(self, hits: Iterable[Hit] = (), missing: tuple[int, ...] = ()) -> None:
        super().__init__(hits)
        self.missing = missing
