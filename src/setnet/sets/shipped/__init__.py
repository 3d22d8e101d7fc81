"""The heads that come with the package: safetensors files beside this module."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from setnet.sets import codec
from setnet.sets.head import Head

__all__ = ["ShippedHead", "heads", "path_of", "shipped_names"]


@dataclass(frozen=True)
class ShippedHead:
    """A head that comes with the package; ``SetNet.load(name)`` makes it ready for use."""

    name: str
    dim: int
    bits: int
    bytes_per_item: int
    element_dim: int
    descriptor: str
    summary: str


def shipped_names() -> list[str]:
    """Return the names of the heads in the package, sorted."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.safetensors"))


def path_of(name: str) -> Path:
    """Return the file of a shipped head."""
    return Path(__file__).parent / f"{name}.safetensors"


def heads() -> list[ShippedHead]:
    """List the heads that come with the package.

    >>> [head.bytes_per_item for head in heads() if head.name == "sface-512"]
    [512]
    """
    found = []
    for name in shipped_names():
        head = Head.load(path_of(name))
        size = codec.row_bytes(head.dim, head.bits)
        summary = str(head.about.get("summary", ""))
        found.append(ShippedHead(name, head.dim, head.bits, size, head.element_dim, head.descriptor, summary))
    return found
