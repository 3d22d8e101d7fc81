"""What a pass over an index reads of each segment, and its queries quantised for it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import backend
from setnet.index.search.codes import Codes
from setnet.index.search.query import Query
from setnet.index.storage.segments.segment import Segment
from setnet.index.storage.snapshot import Snapshot
from setnet.sets import BitCodec

NO_BLOCKS = np.empty(0, np.int64)
NOTHING = np.empty(0, np.uint8)


class Pass:
    """A way of reading segments; its queries lie in one array, so that a vector is loaded once for all."""

    bits: int

    def __init__(self, snapshot: Snapshot, queries: list[Query]) -> None:
        coded = [self._coded(query, snapshot) for query in queries]
        rows = [np.concatenate([getattr(codes, name) for codes in coded]) for name in ROWS]
        owner = np.repeat(np.arange(len(queries)), [len(codes.start) for codes in coded])
        one = coded[0]  # queries of one search have the same logistic
        self._query, self._weight = rows[:-1], rows[-1]
        self._shares = (one.w, one.threshold, one.inflate, owner)

    def _coded(self, query: Query, snapshot: Snapshot) -> Codes:
        raise NotImplementedError

    def reads(self, segment: Segment) -> bool:
        """Return whether a segment has what this pass reads."""
        return True

    def arguments(self, segment: Segment) -> tuple[Any, ...]:
        """Return the first arguments of the scan kernel for a segment."""
        stored = self._stored(segment)
        shift = np.zeros(len(self._weight), np.float32) + self._shift(segment)
        return (self.bits, *stored, *self._query, shift, self._weight, *self._shares)

    def _stored(self, segment: Segment) -> tuple[Any, ...]:
        """Return codes, their low halves, scales, first rows of blocks, first wide block, groups."""
        raise NotImplementedError

    def _shift(self, segment: Segment) -> NDArray[np.float32] | float:
        """Return what is added to the similarities of each query row."""
        return 0.0


ROWS = ("codes", "start", "step", "slack", "weight")


class High(Pass):
    """The high four bits of the elements' codes: bounds of their scores."""

    bits = 4
    kind = "high"
    norms = "high_norms"
    needed: ClassVar[tuple[str, ...]] = ("high_codes", "scales")

    def _coded(self, query: Query, snapshot: Snapshot) -> Codes:
        return Codes.of(query, self.kind, snapshot.norms(self.norms))

    def reads(self, segment: Segment) -> bool:
        """Return whether a segment has the codes that this pass reads."""
        return all(name in segment.file for name in self.needed)

    def _stored(self, segment: Segment) -> tuple[Any, ...]:
        codes, scales = (segment.hot(name) for name in self.needed[:2])
        low = segment.hot(self.needed[2]) if len(self.needed) > 2 else NOTHING
        return codes, low, scales, segment.array("row_start"), segment.file.info["first_wide"], codes.shape[1]


class Whole(High):
    """All eight bits of the elements' codes, in two halves."""

    kind = "whole"
    norms = "norms"
    needed = ("high_codes", "scales", "low_codes")


class Estimates(High):
    """One bit per dimension of the elements: estimates of their scores instead of bounds."""

    bits = 1
    needed = ("bit_codes", "bit_factors")

    def __init__(self, snapshot: Snapshot, queries: list[Query]) -> None:
        super().__init__(snapshot, queries)
        self._wanted = np.concatenate([query.wanted for query in queries]).astype(np.float32)
        self._moved = np.concatenate([query.row_shift for query in queries]).astype(np.float32)

    def reads(self, segment: Segment) -> bool:
        """Return whether a segment has one-bit codes in a rotation that is known here."""
        return segment.bit_coded

    def _coded(self, query: Query, snapshot: Snapshot) -> Codes:
        return Codes.estimating(query, BitCodec.rotated(query.wanted.astype(np.float32)))

    def _shift(self, segment: Segment) -> NDArray[np.float32] | float:
        shift: NDArray[np.float32] = self._wanted @ segment.array("bit_centre")
        return shift + self._moved


class Listed(Estimates):
    """The one-bit codes in the inverted lists of elements, each query row's share by itself."""

    needed = ("list_codes", "list_factors")

    def read(self, segment: Segment, blocks: NDArray[np.int64], shares: NDArray[np.float32]) -> None:
        """Write what the elements in some blocks add to a score, one row for each row of the query."""
        rows = np.arange(len(self._weight))
        *query, _ = self.arguments(segment)
        backend.kernels.scan(*query, rows, blocks, shares, 0, shares.shape[1], True)

    def _stored(self, segment: Segment) -> tuple[Any, ...]:
        codes, scales = (segment.array(name) for name in self.needed)
        return codes, NOTHING, scales, NO_BLOCKS, len(codes), codes.shape[1]


class SetVectors(Pass):
    """The codes of the set vectors: bounds of their scores."""

    def __init__(self, snapshot: Snapshot, queries: list[Query]) -> None:
        assert snapshot.shape.sets is not None
        self.bits = min(8, snapshot.shape.sets.bits)
        super().__init__(snapshot, queries)

    def _coded(self, query: Query, snapshot: Snapshot) -> Codes:
        kind = {8: "bytes", 4: "nibbles", 1: "bits"}[self.bits]
        return Codes.of(query, kind, snapshot.norms("set_norms"))

    def _stored(self, segment: Segment) -> tuple[Any, ...]:
        codes = segment.hot("set_codes")
        wide = -1 if self.bits == 1 else len(codes)
        return codes, NOTHING, segment.hot("set_scales"), NO_BLOCKS, wide, codes.shape[1]
