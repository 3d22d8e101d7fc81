"""Raw files, made here: a DNG with a sensor's values and a JPEG preview, as cameras write them."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from setnet.errors import PhotoError
from setnet.faces import open_photo, raw
from setnet.faces.raw import is_raw

SHORT, LONG, RATIONAL, BYTES, TEXT, SIGNED = 3, 4, 5, 1, 2, 10
SIZES = {SHORT: 2, LONG: 4, RATIONAL: 8, BYTES: 1, TEXT: 1, SIGNED: 8}


def entry(tag: int, kind: int, *values: int) -> tuple[int, int, bytes]:
    if kind in (BYTES, TEXT):
        return tag, kind, bytes(values)
    if kind in (RATIONAL, SIGNED):
        return tag, kind, b"".join(struct.pack("<ii", value, 1) for value in values)
    return tag, kind, struct.pack(f"<{len(values)}{'H' if kind == SHORT else 'I'}", *values)


def directory(entries: list[tuple[int, int, bytes]], at: int) -> bytes:
    """Return the bytes of a TIFF directory that begins at a place of the file, with its values after it."""
    entries = sorted(entries)
    table, values = struct.pack("<H", len(entries)), b""
    after = at + 2 + 12 * len(entries) + 4
    for tag, kind, data in entries:
        table += struct.pack("<HHI", tag, kind, len(data) // SIZES[kind])
        if len(data) <= 4:
            table += data.ljust(4, b"\0")
        else:
            table += struct.pack("<I", after + len(values))
            values += data + b"\0" * (len(data) % 2)
    return table + struct.pack("<I", 0) + values


def dng(preview: bytes, preview_size: tuple[int, int], orientation: int = 1) -> bytes:
    """Return a DNG of 64 x 48 sensor values with a preview; it was taken on 4 July 2019."""
    sensor = np.full((48, 64), 2000, "<u2")
    sensor[:, 32:] = 200
    pixels = sensor.tobytes()
    first, strip = 8, 2048
    parts_at, preview_at = strip + len(pixels), strip + len(pixels) + 1024

    def picture(
        width: int, height: int, compression: int, at: int, count: int
    ) -> list[tuple[int, int, bytes]]:
        return [
            entry(256, LONG, width),
            entry(257, LONG, height),
            entry(259, SHORT, compression),
            entry(273, LONG, at),
            entry(278, LONG, height),
            entry(279, LONG, count),
        ]

    main = [
        *picture(64, 48, 1, strip, len(pixels)),
        entry(254, LONG, 0),
        entry(258, SHORT, 16),
        entry(262, SHORT, 32803),
        entry(271, TEXT, *b"Nobody\0"),
        entry(272, TEXT, *b"Camera\0"),
        entry(274, SHORT, orientation),
        entry(277, SHORT, 1),
        entry(284, SHORT, 1),
        entry(306, TEXT, *b"2019:07:04 12:34:56\0"),
        entry(330, LONG, parts_at),
        entry(33421, SHORT, 2, 2),
        entry(33422, BYTES, 0, 1, 1, 2),
        entry(50706, BYTES, 1, 4, 0, 0),
        entry(50708, TEXT, *b"Nobody Camera\0"),
        entry(50717, LONG, 4095),
        entry(50721, SIGNED, 1, 0, 0, 0, 1, 0, 0, 0, 1),
        entry(50728, RATIONAL, 1, 1, 1),
        entry(50778, SHORT, 21),
    ]
    small = [
        *picture(*preview_size, 7, preview_at, len(preview)),
        entry(254, LONG, 1),
        entry(258, SHORT, 8, 8, 8),
        entry(262, SHORT, 6),
        entry(277, SHORT, 3),
    ]
    data = bytearray(struct.pack("<2sHI", b"II", 42, first) + directory(main, first))
    assert len(data) <= strip
    data += b"\0" * (strip - len(data)) + pixels + directory(small, parts_at)
    return bytes(data + b"\0" * (preview_at - len(data)) + preview)


def jpeg(width: int, height: int) -> bytes:
    """Return a picture that is green on the left and red on the right."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2, 1] = pixels[:, width // 2 :, 0] = 200
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


@pytest.fixture
def rawpy() -> None:
    pytest.importorskip("rawpy", reason="raw files need the extra `raw`: pip install 'setnet[raw]'")


@pytest.mark.usefixtures("rawpy")
def test_the_preview_is_the_photo(tmp_path: Path) -> None:
    path = tmp_path / "IMG_1.dng"
    path.write_bytes(dng(jpeg(1200, 800), (1200, 800)))
    photo = open_photo(path)
    assert (photo.width, photo.height, photo.format, photo.note) == (1200, 800, "RAW", None)
    assert photo.taken == datetime(2019, 7, 4, 12, 34, 56)
    assert photo.pixels[400, 100].tolist() == pytest.approx([0, 200, 0], abs=6)


@pytest.mark.usefixtures("rawpy")
@pytest.mark.parametrize(("orientation", "green"), [(3, (400, 1100)), (6, (100, 400)), (8, (1100, 400))])
def test_it_is_turned_upright_as_the_raw_file_says(orientation: int, green: tuple[int, int]) -> None:
    photo = open_photo(dng(jpeg(1200, 800), (1200, 800), orientation))
    assert (photo.width, photo.height) == ((1200, 800) if orientation == 3 else (800, 1200))
    assert photo.pixels[green].tolist() == pytest.approx([0, 200, 0], abs=6)
    smaller = open_photo(dng(jpeg(1200, 800), (1200, 800), orientation), enough=300)
    assert (smaller.width, smaller.height, smaller.reduction) == (photo.width, photo.height, 4)
    assert (smaller.in_full().pixels == photo.pixels).all()


@pytest.mark.usefixtures("rawpy")
def test_a_preview_of_a_few_pixels_is_not_enough() -> None:
    photo = open_photo(dng(jpeg(160, 120), (160, 120)))
    assert (photo.width, photo.height, photo.format) == (64, 48, "RAW")
    assert photo.pixels[:, :28].mean() > photo.pixels[:, 36:].mean() + 40


@pytest.mark.usefixtures("rawpy")
@pytest.mark.filterwarnings("ignore::UserWarning:PIL.TiffImagePlugin")
def test_damage_is_a_photo_error_or_still_a_photo() -> None:
    data = dng(jpeg(1200, 800), (1200, 800))
    chance = np.random.default_rng(3)
    for _ in range(60):
        broken = bytearray(data)
        for at in chance.integers(0, 1500, 6):
            broken[at] = chance.integers(256)
        with suppress(PhotoError):
            assert open_photo(bytes(broken[: chance.integers(500, len(data))])).pixels.size


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "can_read_raw", lambda: False)
    with pytest.raises(PhotoError, match=r"the given image: a raw file .*pip install 'setnet\[raw\]'"):
        open_photo(dng(jpeg(1200, 800), (1200, 800)))


@pytest.mark.parametrize(
    "beginning",
    [
        b"II\x1a\0\0\0HEAPCCDR",  # CRW
        b"II*\0\x10\0\0\0CR\2\0",  # CR2
        b"\0\0\0\x18ftypcrx \0\0\0\1",  # CR3
        b"FUJIFILMCCD-RAW 0201",
        b"IIRO\x08\0\0\0",  # Olympus
        b"IIU\0\x18\0\0\0",  # Panasonic
    ],
)
@pytest.mark.usefixtures("rawpy")
def test_a_makers_own_format_is_known_by_its_beginning(beginning: bytes) -> None:
    cut_short = beginning.ljust(256, b"\0")
    assert is_raw(cut_short)
    with pytest.raises(PhotoError, match="raw file"):
        open_photo(cut_short)


def test_scans_and_edited_tiffs_are_no_raw_files() -> None:
    image = Image.new("RGB", (20, 10), (200, 0, 0))
    file = io.BytesIO()
    exif = Image.Exif()
    exif[271] = "a scanner"
    image.save(file, "TIFF", exif=exif)
    assert not is_raw(file.getvalue())
    assert open_photo(file.getvalue()).format == "TIFF"
