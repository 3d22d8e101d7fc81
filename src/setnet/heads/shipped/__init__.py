"""The heads that come with the package: safetensors files beside this module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from setnet.heads import codec
from setnet.heads.head import Head

__all__ = ["ShippedHead", "head_path", "shipped_head", "shipped_heads", "shipped_names"]


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


def head_path(name: str) -> Path:
    """Return the file of a shipped head."""
    return Path(__file__).parent / f"{name}.safetensors"


def shipped_head(name: str) -> Head:
    """Return a head of the package, read once: every library that is made or written to asks for it."""
    path = head_path(name)
    return _read(path, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _read(path: Path, changed: int) -> Head:
    return Head.load(path)


def shipped_heads() -> list[ShippedHead]:
    """List the heads that come with the package.

    >>> [head.bytes_per_item for head in shipped_heads() if head.name == "sface-512"]
    [512]
    """
    found = []
    for name in shipped_names():
        head = shipped_head(name)
        size = codec.row_bytes(head.dim, head.bits)
        summary = str(head.about.get("summary", ""))
        found.append(ShippedHead(name, head.dim, head.bits, size, head.element_dim, head.descriptor, summary))
    return found
