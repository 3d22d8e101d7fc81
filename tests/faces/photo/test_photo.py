"""Files made here, of every format and flaw, and what opening them gives."""

from __future__ import annotations

import io
import os
import re
import struct
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pillow_heif
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from setnet.errors import PhotoError
from setnet.faces import Box, open_photo
from tests.support.soak import examples

ORIENTATION, TAKEN = 0x0112, 0x9003
NOISE = np.random.default_rng(4).integers(0, 255, (120, 160, 3), np.uint8)


def scene(width: int = 90, height: int = 60) -> Image.Image:
    """Red left, blue right, a white block in the top left corner: any turn shows."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2, 0] = 220
    pixels[:, width // 2 :, 2] = 220
    pixels[: height // 3, : width // 3] = 255
    return Image.fromarray(pixels)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    if kind in ("HEIF", "AVIF"):
        pillow_heif.register_heif_opener()
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def with_exif(**tags: object) -> Image.Exif:
    exif = Image.Exif()
    if "orientation" in tags:
        exif[ORIENTATION] = tags["orientation"]
    if "taken" in tags:
        exif.get_ifd(0x8769)[TAKEN] = tags["taken"]
    return exif


LOSSLESS: dict[str, dict[str, Any]] = {"PNG": {}, "TIFF": {}, "BMP": {}, "WEBP": {"lossless": True}}
LOSSY: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 95, "subsampling": 0},
    "HEIF": {"quality": 95},
    "AVIF": {"quality": 95},
}


@pytest.mark.parametrize("kind", [*LOSSLESS, *LOSSY, "GIF"])
def test_every_format_gives_the_same_pixels(kind: str) -> None:
    options = {**LOSSLESS, **LOSSY, "GIF": {}}[kind]
    photo = open_photo(encoded(scene(), kind, **options))
    assert (photo.width, photo.height, photo.format) == (90, 60, kind)
    assert photo.pixels.dtype == np.uint8
    difference = np.abs(photo.pixels.astype(int) - np.asarray(scene()).astype(int))
    assert difference.max() == 0 if kind in (*LOSSLESS, "GIF") else difference.mean() < 6


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "HEIF", "AVIF"])
def test_exif_orientation_is_always_applied(kind: str, turn: int) -> None:
    upright = scene()
    # How a camera held that way stores the upright scene: the inverse of what a viewer must do.
    stored = {
        1: upright,
        2: upright.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        3: upright.transpose(Image.Transpose.ROTATE_180),
        4: upright.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
        5: upright.transpose(Image.Transpose.TRANSPOSE),
        6: upright.transpose(Image.Transpose.ROTATE_90),
        7: upright.transpose(Image.Transpose.TRANSVERSE),
        8: upright.transpose(Image.Transpose.ROTATE_270),
    }[turn]
    options = {**LOSSLESS, **LOSSY}[kind]
    exif = with_exif(orientation=turn)
    # Given as bytes, the HEIF encoder also writes the container's own instruction to turn.
    for written in (exif, exif.tobytes()):
        photo = open_photo(encoded(stored, kind, exif=written, **options))
        assert (photo.width, photo.height) == (90, 60)
        assert np.abs(photo.pixels.astype(int) - np.asarray(upright).astype(int)).mean() < 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2019:07:21 14:03:59", datetime(2019, 7, 21, 14, 3, 59)),
        ("2019-07-21 14:03:59\x00", datetime(2019, 7, 21, 14, 3, 59)),
        ("0000:00:00 00:00:00", None),
        ("    :  :     :  :  ", None),
        ("2019:02:31 10:00:00", None),
    ],
)
def test_the_time_is_the_cameras(text: str, expected: datetime | None) -> None:
    assert open_photo(encoded(scene(), "JPEG", exif=with_exif(taken=text))).taken == expected


def test_heic_keeps_its_time() -> None:
    data = encoded(scene(), "HEIF", exif=with_exif(taken="2021:01:02 03:04:05"))
    assert open_photo(data).taken == datetime(2021, 1, 2, 3, 4, 5)


@pytest.mark.filterwarnings("error")
def test_signalling_nan_in_a_float_tiff_is_black() -> None:
    values = np.zeros((4, 4), np.uint32)
    values[0, 0] = 0x7FA00000
    file = io.BytesIO()
    Image.fromarray(values.view(np.float32)).save(file, "TIFF")
    assert open_photo(file.getvalue()).pixels.shape == (4, 4, 3)


def test_damaged_exif_does_not_cost_the_photo() -> None:
    data = encoded(scene(), "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\x7f garbage")
    photo = open_photo(data)
    assert (photo.width, photo.taken) == (90, None)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "I;16"])
def test_every_colour_mode_becomes_rgb(mode: str) -> None:
    grey = scene().convert("L")
    if mode == "I;16":
        image = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
        expected = grey
    else:
        image = scene().convert(mode)
        expected = scene().convert(mode.replace("A", "") if mode in ("LA", "RGBA") else mode)
    kind = {"CMYK": "TIFF", "YCbCr": "TIFF"}.get(mode, "PNG")
    photo = open_photo(encoded(image, kind))
    assert np.abs(photo.pixels.astype(int) - np.asarray(expected.convert("RGB")).astype(int)).max() <= 2


def test_cmyk_jpeg_has_the_right_colours() -> None:
    photo = open_photo(encoded(scene().convert("CMYK"), "JPEG", quality=95))
    assert photo.pixels[50, 10].tolist() == pytest.approx([220, 0, 0], abs=12)
    assert photo.pixels[5, 5].tolist() == pytest.approx([255, 255, 255], abs=12)


def test_lab_tiff_has_the_right_colours() -> None:
    from PIL import ImageCms

    srgb, lab = (ImageCms.ImageCmsProfile(ImageCms.createProfile(name)) for name in ("sRGB", "LAB"))
    to_lab = ImageCms.ImageCmsTransform(srgb, lab, "RGB", "LAB")
    photo = open_photo(encoded(to_lab.apply(scene()), "TIFF"))
    assert photo.pixels[50, 10].tolist() == pytest.approx([220, 0, 0], abs=12)


def test_sixteen_bit_colour_png_keeps_its_brightness() -> None:
    rows = b"".join(b"\x00" + struct.pack(">3H", 0xC0C0, 0x8080, 0x4040) * 4 for _ in range(3))

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", 4, 3, 16, 2, 0, 0, 0)
    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    assert open_photo(data).pixels[1, 1].tolist() == pytest.approx([0xC0, 0x80, 0x40], abs=1)


@pytest.mark.parametrize(
    "values", [np.linspace(0, 1, 64, dtype=np.float32), np.linspace(0, 900, 64, dtype=np.float32)]
)
def test_float_tiff_spans_black_to_white(values: np.ndarray) -> None:
    photo = open_photo(encoded(Image.fromarray(values.reshape(8, 8)), "TIFF"))
    assert (photo.pixels[0, 0, 0], photo.pixels[-1, -1, 0]) == (0, 255)


def test_transparency_shows_white() -> None:
    clear = Image.new("RGBA", (20, 10), (10, 20, 30, 0))
    assert (open_photo(encoded(clear, "PNG")).pixels == 255).all()
    palette = Image.new("P", (20, 10), 0)
    palette.putpalette([200, 0, 0, 0, 0, 0])
    assert (open_photo(encoded(palette, "PNG", transparency=0)).pixels == 255).all()
    assert open_photo(encoded(palette, "PNG")).pixels[0, 0].tolist() == [200, 0, 0]


def test_of_an_animation_the_first_picture_counts() -> None:
    frames = [Image.new("RGB", (20, 10), colour) for colour in ((255, 0, 0), (0, 255, 0))]
    for kind in ("GIF", "WEBP", "TIFF"):
        data = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
        assert open_photo(data).pixels[5, 5, 0] > 200, kind


def test_a_phones_jpeg_with_a_second_picture_inside_is_a_jpeg() -> None:
    data = encoded(scene(), "MPO", save_all=True, append_images=[Image.new("RGB", (10, 10))])
    photo = open_photo(data)
    assert (photo.format, photo.width, photo.height) == ("JPEG", 90, 60)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF", "HEIF", "AVIF"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_a_file_cut_short_is_one_clear_error(kind: str, share: float, tmp_path: Path) -> None:
    data = encoded(Image.fromarray(NOISE), kind)
    path = tmp_path / "holiday.jpg"
    path.write_bytes(data[: max(1, int(len(data) * share))])
    if kind == "JPEG" and share > 0.1:
        assert "cut short" in str(open_photo(path).note)
        return
    message = r"holiday\.jpg: " + ("" if kind == "BMP" else "damaged or cut short")
    with pytest.raises(PhotoError, match=message):
        open_photo(path)


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("enough", [None, 60])
def test_of_a_jpeg_cut_short_what_came_before_is_kept(orientation: int, enough: int | None) -> None:
    whole = encoded(Image.fromarray(NOISE), "JPEG", exif=with_exif(orientation=orientation))
    photo = open_photo(whole[: len(whole) * 6 // 10], enough=enough)
    full = open_photo(whole, enough=enough)
    assert full.note is None
    assert (photo.width, photo.height, photo.reduction) == (full.width, full.height, full.reduction)
    lost = int(re.search(r"the last (\d+) %", str(photo.note).replace("%", " %"))[1])  # type: ignore[index]
    assert 25 <= lost <= 45
    same = (photo.pixels == full.pixels).all(axis=2)
    assert 0.4 <= same.mean() <= 0.65
    first, last = (same[:40], same[-40:]) if orientation == 1 else (same[:, -40:], same[:, :40])
    if enough is None:
        assert first.all()
    assert not last.all()


def test_a_progressive_jpeg_cut_short_lacks_detail_only() -> None:
    smooth = Image.fromarray(np.add.outer(np.arange(120), np.arange(160)).astype(np.uint8))
    data = encoded(smooth.convert("RGB"), "JPEG", progressive=True, quality=98)
    for end in range(len(data) * 4 // 10, len(data) - 8, 37):  # also between two parts, and inside tables
        photo = open_photo(data[:end])
        assert photo.note == "cut short: some of its detail is missing, the rest was read"
        assert np.abs(photo.pixels.astype(int) - np.asarray(smooth.convert("RGB"))).mean() < 8


def test_a_jpeg_that_ends_with_its_header_is_an_error() -> None:
    data = encoded(Image.fromarray(NOISE), "JPEG")
    start = data.index(b"\xff\xda")
    for end in (start, start + 14):
        with pytest.raises(PhotoError, match="damaged or cut short JPEG"):
            open_photo(data[:end])


def test_the_content_counts_not_the_extension(tmp_path: Path) -> None:
    path = tmp_path / "really-a-png.jpg"
    path.write_bytes(encoded(scene(), "PNG"))
    assert open_photo(path).format == "PNG"
    path.write_bytes(b"%PDF-1.4 nothing to see")
    with pytest.raises(PhotoError, match="not a photo in a format"):
        open_photo(path)


def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    lying = bytearray(encoded(scene(), "PNG"))
    lying[16:24] = struct.pack(">II", 60_000, 60_000)
    lying[29:33] = struct.pack(">I", zlib.crc32(bytes(lying[12:29])))
    with pytest.raises(PhotoError, match="limit of 128 million"):
        open_photo(bytes(lying))
    with pytest.raises(PhotoError, match=r"90 x 60 pixels .* max_pixels"):
        open_photo(encoded(scene(), "PNG"), max_pixels=5_399)
    assert open_photo(encoded(scene(), "PNG"), max_pixels=5_400).width == 90


@pytest.mark.parametrize("width", [90, 91])
def test_a_jpeg_of_up_to_twice_the_limit_is_decoded_at_half_its_size(width: int) -> None:
    data = encoded(scene(width), "JPEG")
    photo = open_photo(data, max_pixels=width * 30)
    assert (photo.width, photo.height, photo.reduction) == (width, 60, 2)
    assert photo.pixels.shape == (30, (width + 1) // 2, 3)
    assert photo.in_full() is photo
    smaller = open_photo(data, max_pixels=width * 30, enough=20)
    assert smaller.reduction == 4
    assert smaller.in_full().reduction == 2
    assert photo.in_pixels(Box(10, 20, 30, 40)) == (5, 10, 15, 20)
    with pytest.raises(PhotoError, match="twice as many in a JPEG"):
        open_photo(data, max_pixels=width * 30 - 1)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(PhotoError, match=r"nowhere\.jpg: no such file"):
        open_photo(tmp_path / "nowhere.jpg")
    with pytest.raises(PhotoError, match="is a folder"):
        open_photo(tmp_path)
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(PhotoError, match=r"empty\.jpg: the file is empty"):
        open_photo(tmp_path / "empty.jpg")


def test_a_pipe_and_an_endless_file_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(PhotoError, match="is a device or a pipe"):
        open_photo(tmp_path / "pipe.jpg")
    with (tmp_path / "endless.tif").open("wb") as file:
        file.truncate(3_000_000_000)  # a hole: takes no room on the disk
    with pytest.raises(PhotoError, match=r"endless\.tif: 3\.0 GB are more"):
        open_photo(tmp_path / "endless.tif")


def test_names_that_are_no_utf8_are_read_and_named_printably(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jpg")
    try:
        Path(path).write_bytes(encoded(scene(), "JPEG"))
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert open_photo(path).width == 90
    Path(path).write_bytes(b"no photo")
    with pytest.raises(PhotoError) as caught:
        open_photo(path)
    str(caught.value).encode("utf-8")


@settings(max_examples=examples(50), deadline=None)
@given(
    kind=st.sampled_from(["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP", "HEIF"]),
    flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=8),
)
def test_damage_gives_a_photo_or_a_photo_error_and_nothing_else(
    kind: str, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(encoded(scene(48, 32), kind))
    for at, change in flips:
        data[at % len(data)] ^= change
    try:
        photo = open_photo(bytes(data), max_pixels=4_000_000)
    except PhotoError:
        return
    assert photo.reduction > 1 or photo.pixels.shape == (photo.height, photo.width, 3)


def test_a_jpeg_of_very_many_scans_is_refused(tmp_path: Path) -> None:
    progressive = encoded(scene(), "JPEG", progressive=True)
    assert open_photo(progressive).width == 90
    last = progressive.rindex(b"\xff\xda")  # a scan that refines what is there: it may come again
    crafted = progressive[:-2] + progressive[last:-2] * 2000 + progressive[-2:]
    with pytest.raises(PhotoError, match="more than 100 scans"):
        open_photo(crafted)
    assert open_photo(progressive + crafted).width == 90, "what follows the end of the picture is not decoded"
