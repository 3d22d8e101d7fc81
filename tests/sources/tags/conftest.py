"""A library of photos that were never taken, with files that tags can be written into."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

import invented_photos
from setnet.library import Library, PhotoWriter

AddPhoto = Callable[..., Path]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        yield library


@pytest.fixture
def add_photo(library: Library, tmp_path: Path) -> AddPhoto:
    """Return the function that writes a photo of 1600 x 1200 and stores it with faces of people.

    The face of person n is at 100 n, 50 to 100 n + 80, 150, in the upright photo.
    """

    def add(name: str, *people: int, xmp: bytes | None = None, orientation: int = 1) -> Path:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        exif = Image.Exif()
        exif[0x0112] = orientation
        size = (120, 160) if orientation >= 5 else (160, 120)
        options: dict[str, Any] = {} if xmp is None else {"xmp": xmp}
        if xmp is not None and path.suffix == ".png":
            chunks = PngImagePlugin.PngInfo()
            chunks.add_itxt("XML:com.adobe.xmp", xmp.decode())
            options = {"pnginfo": chunks}
        Image.new("RGB", size).save(path, exif=exif, **options)
        result = replace(
            invented_photos._result(name, people, None),
            path=bytes(path),
            hash=zlib.crc32(path.read_bytes() + name.encode()).to_bytes(16, "big"),
        )
        with library._writing() as index:
            PhotoWriter(library._database, index).store([result])
        return path

    return add
