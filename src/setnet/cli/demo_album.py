"""The demo's album: group photos of known people, the same on every machine, and queries with known answers.

The synthetic people of `openpeople` are cut out of their pictures so that they can stand together.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, ModelError, StorageError

_CALLED = ("Ada", "Bea", "Cleo", "Dina", "Emil", "Fay", "Gus", "Hugo", "Iris", "Jana")
# The people's folders in `openpeople`, and what the demo calls them.
NAMES = {f"P{number:03}": name for number, name in enumerate(_CALLED, 1)}
PEOPLE = tuple(NAMES)
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
    return _trim(Cutout(pixels, alpha))


def _trim(cutout: Cutout) -> Cutout:
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


PHOTOS = 64
_EMPTY = 5
_SEED = 2018
_WIDTH, _HEIGHT = 1280, 960
_ORIENTATION, _TAKEN = 0x0112, 0x9003
_EXIF_PART, _CHANGED = 0x8769, 0x0132
_QUARTERS = {1: 0, 3: 2, 6: 1, 8: 3}  # EXIF orientation: turns to the left that the stored pixels got


@dataclass(frozen=True, slots=True)
class AlbumPhoto:
    """A photo of the album: its name and the people who are in it."""

    name: str
    people: tuple[str, ...]


def make_album(folder: Path, progress: Callable[[str, int, int], None] | None = None) -> list[AlbumPhoto]:
    """Compose the album in `folder`, unless it is there already; return who is in which photo."""
    truth = folder / "who-is-where.json"
    photos = album()
    text = json.dumps({photo.name: [NAMES[p] for p in photo.people] for photo in photos}, indent=1)
    part = folder.with_name(f"{folder.name}.part")
    try:
        if truth.is_file() and truth.read_text(encoding="utf-8") == text:
            return photos
        _clear(folder, truth)
        shutil.rmtree(part, ignore_errors=True)  # of a demo that was cut short
        part.mkdir(parents=True)
        for number, photo in enumerate(photos):
            if progress is not None:
                progress("composing photos", number, len(photos))
            _compose(photo, number, part / photo.name)
        (part / truth.name).write_text(text, encoding="utf-8")
        part.rename(folder)
    except OSError as error:
        raise StorageError(f"cannot make the album in {folder}: {error.strerror or error}") from error
    return photos


def _clear(folder: Path, truth: Path) -> None:
    """Remove the album of another version of the demo; a folder with anything else in it is not ours."""
    if truth.is_file():
        for name in json.loads(truth.read_text(encoding="utf-8")):
            (folder / Path(name).name).unlink(missing_ok=True)
        truth.unlink()
    if folder.is_dir():
        if any(folder.iterdir()):
            raise InvalidInputError(f"{folder} has other files in it: choose another place with --folder DIR")
        folder.rmdir()


def album() -> list[AlbumPhoto]:
    """Return the plan of the album: groups of two to five people, and a few photos of nobody."""
    chance = np.random.default_rng(_SEED)
    photos = []
    for number in range(PHOTOS):
        size = (
            0
            if number % (PHOTOS // _EMPTY) == 5
            else int(chance.choice([2, 3, 4, 5], p=[0.4, 0.3, 0.2, 0.1]))
        )
        people = tuple(str(p) for p in chance.choice(PEOPLE, size, replace=False))
        photos.append(AlbumPhoto(f"IMG_{number + 1:04}.jpg", people))
    return photos


def _compose(photo: AlbumPhoto, number: int, path: Path) -> None:
    chance = np.random.default_rng([_SEED, number])
    people = list(photo.people)
    kind = chance.choice(["outdoors", "selfie", "party"], p=[0.3, 0.25, 0.45]) if people else "empty"
    if kind == "empty":
        canvas = _scenery(chance)
    elif kind == "party":
        canvas = _backdrop(chance)
    else:
        # The first person is already in the picture that the others join.
        canvas = _widen_scene(people.pop(0), str(kind), chance)
    _join(canvas, people, str(kind), chance)
    _save(_change_light(canvas, chance), path, number, chance)


def _widen_scene(person: str, kind: str, chance: np.random.Generator) -> Pixels:
    """Return a person's own photo as a landscape, its edges mirrored to make room for others."""
    import cv2

    pixels = picture(person, "amateur_posture" if kind == "outdoors" else "amateur_selfie")
    first, last = (0.02, 0.5) if kind == "outdoors" else (0.05, 0.75)
    part = pixels[int(first * len(pixels)) : int((last + chance.uniform(-0.04, 0.04)) * len(pixels))]
    scene = _resize(part, width=round(part.shape[1] * _HEIGHT / part.shape[0]))[:_HEIGHT]
    missing = max(0, _WIDTH - scene.shape[1])
    below = _HEIGHT - scene.shape[0]
    wide = cv2.copyMakeBorder(scene, 0, below, (missing + 1) // 2, missing // 2, cv2.BORDER_REFLECT_101)
    left = int(chance.integers(0, wide.shape[1] - _WIDTH + 1))
    return np.ascontiguousarray(wide[:, left : left + _WIDTH])


def _join(canvas: Pixels, people: Sequence[str], kind: str, chance: np.random.Generator) -> None:
    """Put people side by side along the lower edge; beside, not before, whoever is in the scene."""
    if not people:
        return
    if kind == "party":
        places = (np.arange(len(people)) + 0.5) / len(people)
    else:
        sides = [0.13, 0.87, 0.3, 0.7][: len(people)] if len(people) > 2 else [0.15, 0.85]
        places = np.array(sides[: len(people)])
    room = _WIDTH * (0.9 / max(2, len(people)) if kind == "party" else 0.3)
    for person, place in zip(people, places, strict=True):
        # A selfie's face fills the middle: whoever joins stays low.
        upright = kind != "selfie" and chance.random() < 0.2
        cutout = standing(person) if upright else bust(person, int(chance.integers(TILES)))
        rows, columns = cutout.alpha.shape
        tallest = _HEIGHT * (0.33 if kind == "selfie" else 0.6)
        width = min(room * chance.uniform(0.75, 1.1), 470, tallest * columns / rows)
        scaled = _scale(cutout, width / columns)
        centre = place * _WIDTH + chance.uniform(-18, 18)
        _paste(canvas, scaled, int(centre - scaled.alpha.shape[1] / 2), _HEIGHT - scaled.alpha.shape[0])


def _paste(canvas: Pixels, cutout: Cutout, left: int, top: int) -> None:
    rows = slice(max(0, top), min(canvas.shape[0], top + cutout.alpha.shape[0]))
    columns = slice(max(0, left), min(canvas.shape[1], left + cutout.alpha.shape[1]))
    inner = slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left)
    alpha = cutout.alpha[inner][..., None]
    mixed = canvas[rows, columns] * (1 - alpha) + cutout.pixels[inner] * alpha
    canvas[rows, columns] = mixed.astype(np.uint8)


def _backdrop(chance: np.random.Generator) -> Pixels:
    """Return an indoor mood: soft lights out of focus over a wall of one colour."""
    import cv2

    colour = chance.uniform((60, 45, 40), (150, 140, 135))
    small = np.linspace(1.15, 0.7, _HEIGHT // 4)[:, None, None] * np.ones((1, _WIDTH // 4, 1)) * colour
    for _ in range(int(chance.integers(8, 20))):
        centre = int(chance.integers(0, _WIDTH // 4)), int(chance.integers(0, _HEIGHT // 6))
        light = chance.uniform((150, 110, 60), (255, 225, 170)) * 0.55
        spot = np.zeros_like(small)
        cv2.circle(spot, centre, int(chance.integers(4, 12)), light.tolist(), -1)
        small = np.maximum(small, cv2.GaussianBlur(spot, (0, 0), 1.2) + 0.35 * small)
    wall = cv2.resize(small, (_WIDTH, _HEIGHT), interpolation=cv2.INTER_LINEAR)
    grain = chance.normal(0, 3, (_HEIGHT, _WIDTH, 1))
    return np.clip(wall + grain, 0, 255).astype(np.uint8)


def _scenery(chance: np.random.Generator) -> Pixels:
    """Return a piece of park without anyone: what is beside a person standing outdoors."""
    pixels = picture(str(chance.choice(PEOPLE)), "amateur_posture")
    rows, columns = pixels.shape[:2]
    top = int(rows * chance.uniform(0.0, 0.25))
    left = pixels[top : top + columns // 4, : columns // 4]
    return _resize(left, width=_WIDTH)[:_HEIGHT].copy()


def _resize(pixels: Pixels, width: int) -> Pixels:
    import cv2

    height = max(1, round(pixels.shape[0] * width / pixels.shape[1]))
    return np.asarray(cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def _scale(cutout: Cutout, scale: float) -> Cutout:
    import cv2

    size = max(1, round(cutout.alpha.shape[1] * scale)), max(1, round(cutout.alpha.shape[0] * scale))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    pixels = np.asarray(cv2.resize(cutout.pixels, size, interpolation=how), np.uint8)
    return Cutout(pixels, np.asarray(cv2.resize(cutout.alpha, size, interpolation=how), np.float32))


def _change_light(canvas: Pixels, chance: np.random.Generator) -> Pixels:
    """Change the light: darker or brighter, warmer or colder, more or less contrast."""
    import cv2

    curve = np.linspace(0, 1, 256) ** chance.uniform(0.75, 1.4) * chance.uniform(0.85, 1.1)
    warmth = chance.uniform(-0.07, 0.07)
    table = np.clip(255 * curve[:, None] * (1 + warmth, 1.0, 1 - warmth), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(canvas, table[:, None, :]), np.uint8)


def _save(canvas: Pixels, path: Path, number: int, chance: np.random.Generator) -> None:
    """Write the JPEG, some of them smaller, or rotated with the EXIF orientation that undoes it."""
    from PIL import Image

    if chance.random() < 0.25:
        canvas = _resize(canvas, width=int(chance.integers(800, 1100)))
    turn = int(chance.choice([3, 6, 8])) if number % 7 == 3 else 1
    image = Image.fromarray(np.ascontiguousarray(np.rot90(canvas, _QUARTERS[turn])))
    exif = Image.Exif()
    exif[_ORIENTATION] = turn
    taken = f"{2016 + number // 10}:{number % 12 + 1:02}:{number % 27 + 1:02} {9 + number % 12:02}:30:00"
    exif[_CHANGED] = taken
    exif.get_ifd(_EXIF_PART)[_TAKEN] = taken
    image.save(path, "JPEG", quality=int(chance.integers(62, 94)), exif=exif)


# Four of the ten synthetic people were drawn alike (similarities of up to 0.64, where strangers on photos
# hardly reach 0.35): they are in the album, but not looked for.
DISTINCT = tuple(person for person in PEOPLE if person not in ("P002", "P004", "P006", "P010"))


@dataclass(frozen=True, slots=True)
class DemoQuery:
    """People to look for, and people who must not be in the photo."""

    people: tuple[str, ...]
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        *others, last = (NAMES[person] for person in self.people)
        without = f", without {NAMES[self.without[0]]}" if self.without else ""
        return f"{', '.join(others)} and {last}{without}"

    def relevance(self, photo: AlbumPhoto) -> int:
        """Return how many of the people are in the photo; 0 if somebody unwanted is."""
        if set(self.without) & set(photo.people):
            return 0
        return len(set(self.people) & set(photo.people))


def three_queries(photos: Sequence[AlbumPhoto]) -> list[DemoQuery]:
    """Return two people, three people, and two without a third: the most often together."""

    def together(people: tuple[str, ...]) -> int:
        return sum(set(people) <= set(photo.people) for photo in photos)

    pair, other = sorted(combinations(DISTINCT, 2), key=together)[-2:]
    triple = max(combinations(DISTINCT, 3), key=together)
    third = max((p for p in DISTINCT if p not in other), key=lambda p: together((*other, p)))
    return [DemoQuery(pair), DemoQuery(triple), DemoQuery(other, (third,))]


def ndcg_at_10(query: DemoQuery, ranked: Sequence[AlbumPhoto], photos: Sequence[AlbumPhoto]) -> float:
    """Return nDCG@10 of an answer in percent (paper, equation 3)."""
    from setnet.evaluate import ndcg

    found = [query.relevance(photo) for photo in ranked]
    return float(ndcg(found + [0] * (10 - len(found)), [query.relevance(photo) for photo in photos], 10))
