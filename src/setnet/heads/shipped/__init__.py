"""The heads that come with the package: safetensors files beside this module."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from setnet.heads.head import Head

__all__ = ["head_path", "shipped_head", "shipped_heads", "shipped_names"]


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


def shipped_heads() -> list[Head]:
    """Return the heads that come with the package; ``SetNet.load(name)`` makes one ready for use.

    >>> [head.bytes_per_item for head in shipped_heads() if head.name == "sface-512"]
    [512]
    """
    return [shipped_head(name) for name in shipped_names()]
