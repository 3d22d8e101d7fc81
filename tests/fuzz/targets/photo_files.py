"""Damaged and crafted photos, read in the worker process of an index run, with its limits."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from setnet.faces import FaceSettings
from setnet.library.photo_reader import PhotoReader, PhotoTask
from setnet.sandbox import Limits
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.target import Function

__all__ = ["damaged_photo", "photos", "target"]

MAX_PIXELS = 4_000_000
SECONDS = 20.0
HEADER = 400  # bytes in which most of what is not pixels lies
WORDS = [
    b"\xff\xd8", b"\xff\xd9", b"\xff\xc0", b"\xff\xc2", b"\xff\xc4", b"\xff\xda", b"\xff\xdb", b"\xff\xe1",
    b"\xff\xe2", b"\xff\xee", b"Exif\0\0", b"II*\0", b"MM\0*", b"http://ns.adobe.com/xap/1.0/\0", b"MPF\0",
    b"IHDR", b"IDAT", b"IEND", b"PLTE", b"tRNS", b"iCCP", b"eXIf", b"acTL", b"fcTL", b"zTXt", b"iTXt",
    b"RIFF", b"WEBP", b"VP8 ", b"VP8L", b"VP8X", b"ANIM", b"ANMF", b"GIF87a", b"GIF89a", b"\x21\xf9\x04",
    b"\x21\xff\x0bNETSCAPE2.0", b"ftyp", b"heic", b"avif", b"meta", b"iloc", b"ispe", b"irot", b"hvcC", b"BM",
]  # fmt: skip


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that damages a photo and has it read as an index run does."""
    sound = photos()
    file = folder / "photo"
    # Coverage is only seen in this process, and limits only hold in another one.
    workers = 0 if os.environ.get("SETNET_FUZZ_GUIDED") else 1
    limits = Limits(seconds=SECONDS)
    with PhotoReader(FaceSettings(max_pixels=MAX_PIXELS), workers, limits) as reader:
        capacity = reader.pool.capacity

        def run(data: bytes) -> None:
            file.write_bytes(damaged_photo(Choices(data), sound))
            task = PhotoTask(os.fsencode(file))
            result = reader._result(task) if not capacity else next(iter(reader.results([task])))
            reason = result.reason or ""
            for sign in ("unexpected", "died", "took longer", "invalid reply", "cannot be processed"):
                assert sign not in reason, reason
            assert result.width * result.height <= MAX_PIXELS, "more pixels than the limit"

        yield run


def photos() -> list[bytes]:
    """Return small generated photos of all formats and many of their kinds."""
    import pillow_heif
    from PIL import Image

    pillow_heif.register_heif_opener()
    rows, columns = np.mgrid[:40, :48]
    rgb = np.stack([rows * 6, columns * 5, (rows + columns) * 2], -1).astype(np.uint8)
    color = Image.fromarray(rgb)
    clear = Image.fromarray(np.dstack([rgb, rgb[..., 0]]))
    deep = Image.fromarray((rows * 1500).astype(np.uint16))
    exif = Image.Exif()
    exif[0x0112], exif[0x0132] = 6, "2019:07:14 18:30:00"
    exif.get_ifd(0x8769)[0x9003] = "2019:07:14 18:30:00"
    second = color.rotate(90, expand=True).resize(color.size)
    kinds: list[tuple[Any, str, dict[str, Any]]] = [
        (color, "JPEG", {"exif": exif}),
        (color, "JPEG", {"progressive": True, "subsampling": 0}),
        (color.convert("CMYK"), "JPEG", {}),
        (color.convert("L"), "JPEG", {"restart_marker_rows": 1}),
        (color, "MPO", {"save_all": True, "append_images": [second]}),
        (color, "PNG", {"exif": exif}),
        (clear, "PNG", {}),
        (deep, "PNG", {}),
        (color.convert("P"), "PNG", {"transparency": 3}),
        (color, "PNG", {"save_all": True, "append_images": [second]}),
        (color, "WEBP", {"exif": exif}),
        (clear, "WEBP", {"lossless": True}),
        (color, "WEBP", {"save_all": True, "append_images": [second]}),
        (color, "TIFF", {"exif": exif}),
        (color, "TIFF", {"compression": "tiff_lzw"}),
        (color, "TIFF", {"compression": "jpeg"}),
        (color.convert("1"), "TIFF", {"compression": "group4"}),
        (color.convert("F"), "TIFF", {}),
        (color.convert("LAB"), "TIFF", {"compression": "tiff_deflate"}),
        (color, "GIF", {"save_all": True, "append_images": [second]}),
        (color, "BMP", {}),
        (color.convert("P"), "BMP", {}),
        (color, "HEIF", {"exif": exif}),
        (color, "AVIF", {"exif": exif}),
    ]
    made = []
    for image, kind, options in kinds:
        file = io.BytesIO()
        try:
            image.save(file, kind, **options)
        except (KeyError, OSError):  # a format or compression that this build of Pillow lacks
            continue
        made.append(file.getvalue())
    return made


def damaged_photo(choices: Choices, sound: list[bytes]) -> bytes:
    """Return a photo with changes in its header, in its EXIF data, or anywhere; or bytes as they are."""
    if choices.once_in(40):
        return choices.rest()
    data = choices.pick(sound)
    match choices.below(4):
        case 0:
            data = mutated_bytes(choices, data, WORDS)
        case 1 if b"Exif\0\0" in data or b"eXIf" in data:
            at = max(data.find(b"Exif\0\0"), data.find(b"eXIf")) + 4
            data = data[:at] + mutated_bytes(choices, data[at : at + 200], WORDS) + data[at + 200 :]
        case _:
            data = mutated_bytes(choices, data[:HEADER], WORDS) + data[HEADER:]
    return _with_checksums(data) if data.startswith(b"\x89PNG") else data


def _with_checksums(png: bytes) -> bytes:
    """Return a PNG file whose checksums fit, so that its chunks are read."""
    fixed, at = bytearray(png), 8
    while at + 12 <= len(fixed):
        end = at + 8 + int.from_bytes(fixed[at : at + 4], "big")
        fixed[end : end + 4] = zlib.crc32(fixed[at + 4 : end]).to_bytes(4, "big")
        at = end + 4
    return bytes(fixed[: max(len(png), 8)])
