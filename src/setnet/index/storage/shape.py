"""What the vectors of an index look like: dimension and precision of elements and of set vectors."""

from __future__ import annotations

from dataclasses import dataclass

from setnet.sets import codec


@dataclass(frozen=True, slots=True)
class SetSpec:
    """The set vectors of an index: who made them, their dimension and bits per dimension.

    ``fingerprint`` distinguishes makers of one name; empty where the maker has none.
    """

    name: str
    dim: int
    bits: int
    fingerprint: str = ""

    @property
    def row_bytes(self) -> int:
        """Bytes of one stored set vector."""
        return codec.row_bytes(self.dim, self.bits)


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimension and precision of the elements, and the set vectors beside them if any."""

    dim: int
    precision: str
    sets: SetSpec | None
