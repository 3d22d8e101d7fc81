"""The synthetic people of `openpeople`, cut out of their pictures so that they can stand together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import ModelError

PEOPLE = tuple(f"P{number:03}" for number in range(1, 11))
TILES = 16

_LINE = 14  # pixels: the white line around each picture of the sheet of expressions

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Cutout:
    """A person without background: RGB pixels and how much of each is theirs (0..1)."""

    pixels: Pixels
    alpha: NDArray[np.float32]


class _Frame(NamedTuple):
    left: int
    top: int
    width: int
    height: int


def portrait_path(person: str) -> Path:
    """Return the studio portrait of a person: the query, never part of the album."""
    return _folder() / person / "assets" / "studio_portrait.jpg"


@cache
def picture(person: str, name: str) -> Pixels:
    """Return one of a person's pictures at half size, which is plenty for an album."""
    from PIL import Image

    with Image.open(_folder() / person / "assets" / f"{name}.jpg") as image:
        small = image.convert("RGB").resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)
        return np.asarray(small)


@cache
def _sheet(person: str) -> Pixels:
    from PIL import Image

    with Image.open(_folder() / person / "assets" / "emotions_sheet.jpg") as image:
        return np.asarray(image.convert("RGB"))


@cache
def _tiles(person: str) -> list[_Frame]:
    """Return the frames of the sheet's 16 framed pictures, row by row."""
    import cv2

    sheet = _sheet(person)
    white = (sheet.min(axis=2) > 215).astype(np.uint8)
    outlines, _ = cv2.findContours(white, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    frames = [_Frame(*cv2.boundingRect(outline)) for outline in outlines]
    smallest = sheet.shape[1] // 6, sheet.shape[0] // 8
    frames = [f for f in frames if smallest[0] < f.width < 2 * smallest[0] and f.height > smallest[1]]
    return sorted(frames, key=lambda f: (round(f.top / (sheet.shape[0] / 4.6)), f.left))


@cache
def bust(person: str, tile: int) -> Cutout:
    """Return head and shoulders with one of 16 expressions."""
    frames = _tiles(person)
    frame = frames[tile % len(frames)]
    rows = slice(frame.top + _LINE, frame.top + frame.height - _LINE)
    inside = rows, slice(frame.left + _LINE, frame.left + frame.width - _LINE)
    return _without_grey(_sheet(person)[inside])


@cache
def standing(person: str) -> Cutout:
    """Return the upper half of the person standing in a studio."""
    from PIL import Image

    with Image.open(_folder() / person / "assets" / "studio_posture.jpg") as image:
        upper = image.convert("RGB").crop((0, 0, image.width, image.height // 2))
    return _without_grey(np.asarray(upper))


def _without_grey(pixels: Pixels) -> Cutout:
    """Take away the even grey of the studio: what is far from its colour is the person."""
    import cv2

    colours = cv2.cvtColor(pixels, cv2.COLOR_RGB2LAB).astype(np.float32)
    edge = np.concatenate([part.reshape(-1, 3) for part in (colours[:, :6], colours[:, -6:], colours[:6])])
    away = np.linalg.norm((colours - np.median(edge, axis=0)) * (0.9, 1.6, 1.6), axis=2)
    core = (away > 22).astype(np.uint8)
    core = cv2.morphologyEx(core, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    outlines, _ = cv2.findContours(core, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    person = np.zeros_like(core)
    if outlines:
        cv2.drawContours(person, [max(outlines, key=cv2.contourArea)], -1, 1, cv2.FILLED)
    inside = cv2.erode(person, np.ones((5, 5), np.uint8))
    soft = np.clip((away - 10) / 16, 0, 1) * cv2.dilate(person, np.ones((5, 5), np.uint8))
    alpha = cv2.GaussianBlur(np.maximum(soft, inside).astype(np.float32), (0, 0), 1.0)
    return _trimmed(Cutout(pixels, alpha))


def _trimmed(cutout: Cutout) -> Cutout:
    columns = np.flatnonzero(cutout.alpha.max(axis=0) > 0.5)
    rows = np.flatnonzero(cutout.alpha.max(axis=1) > 0.5)
    part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return Cutout(cutout.pixels[part], cutout.alpha[part])


@cache
def _folder() -> Path:
    spec = find_spec("openpeople")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError("the demo needs the package openpeople: pip install 'setnet[demo]'")
    return Path(next(iter(spec.submodule_search_locations))) / "data" / "curated"
