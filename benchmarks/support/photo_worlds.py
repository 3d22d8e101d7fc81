"""Photos with known people for benchmarks/photos.py; none of a real person is ever kept."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from setnet.evaluate import read_press_photos, read_split

Pixels = npt.NDArray[np.uint8]
GRAIN = 4.0
MARGIN = 40  # of an LFW picture's 250 pixels, which show others' shoulders and ears
FACE_SHARE = 0.4  # of an LFW picture's side


@dataclass(frozen=True)
class Placed:
    """A person in a photo: which picture, where its middle is, how large the face, how it was made harder."""

    person: str
    picture: str
    x: float
    y: float
    size: float
    kind: str = "plain"


@dataclass(frozen=True, eq=False)
class TrueImage:
    """A photo as a JPEG file and who is in it."""

    data: bytes
    people: tuple[Placed, ...]


def synthetic_group(width: int, height: int, small: bool, kind: str) -> bytes:
    """Return a file with four of openpeople's synthetic people: side by side, or `small` and far away."""
    spec = importlib.util.find_spec("openpeople")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the photos to time are made of openpeople's: pip install '.[demo]'")
    folder = Path(spec.submodule_search_locations[0]) / "data" / "curated"
    names = ["amateur_posture"] * 4 if small else ["amateur_selfie", "amateur_posture"] * 2
    rng = np.random.default_rng(0)
    pictures = [
        _read(folder / f"P{number:03}" / "assets" / f"{name}.jpg") for number, name in enumerate(names, 1)
    ]
    canvas = cv2.GaussianBlur(cv2.resize(pictures[0], (width // 8, height // 8)), (0, 0), 12)
    canvas = np.asarray(cv2.resize(canvas, (width, height)), np.uint8)
    column, tall = width // 4, height // 3 if small else height
    for place, picture in enumerate(pictures):
        scale = tall / len(picture) if small else max(tall / len(picture), column / picture.shape[1])
        person = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        left = max(0, person.shape[1] - column) // 2
        part = person[:tall, left : left + column]
        top = height - tall
        canvas[top:, place * column : place * column + part.shape[1]] = part
    noisy = canvas + rng.normal(0, GRAIN, (*canvas.shape[:2], 1))
    return _encoded(np.clip(noisy, 0, 255).astype(np.uint8), kind)


def lfw_people(lfw: Path, half: str) -> dict[str, list[str]]:
    """Return the pictures of each person of a half of LFW who has several."""
    names = sorted(getattr(read_split(), half))
    files = {name: sorted(path.name for path in (lfw / "images" / name).glob("*.jpg")) for name in names}
    return {name: pictures for name, pictures in files.items() if len(pictures) > 1}


def composed_photos(lfw: Path, half: str, count: int, seed: int = 0) -> Iterator[TrueImage]:
    """Yield 12-megapixel photos of twelve LFW pictures each: faces of 45 to 500 pixels, one in four turned
    by 15 to 35 degrees, one in four dark and noisy. A person's first picture is left to query with."""
    rng = np.random.default_rng((seed, half == "test"))
    people = lfw_people(lfw, half)
    order = [sorted(people)[i] for i in rng.permutation(len(people))]
    cell, across, down = 1000, 4, 3
    for number in range(count):
        canvas = _backdrop(_read(lfw / "images" / order[number] / people[order[number]][0]), rng)
        placed = []
        for place in range(across * down):
            person = order[(number * across * down + place) % len(order)]
            name = people[person][1 + int(rng.integers(len(people[person]) - 1))]
            picture, kind = _made_harder(_read(lfw / "images" / person / name), rng)
            size = float(np.exp(rng.uniform(np.log(45), np.log(500))))
            picture = picture[MARGIN:-MARGIN, MARGIN:-MARGIN]
            side = min(cell, round(size / FACE_SHARE * len(picture) / 250))
            left, top = (int(rng.uniform(0, cell - side)) for _ in range(2))
            left, top = left + place % across * cell, top + place // across * cell
            _paste(canvas, picture, left, top, side)
            size = side * FACE_SHARE * 250 / len(picture)
            placed.append(Placed(person, name, left + side / 2, top + side / 2, size, kind))
        yield TrueImage(_encoded(canvas, "JPEG"), tuple(placed))


def press_photos(lfw: Path, half: str, enlarged: int = 2) -> Iterator[TrueImage]:
    """Yield real press photos with several people, as far as LFW's pictures show them, put back in place."""
    people = getattr(read_split(), half)
    for faces in read_press_photos(lfw / "lists" / "multi_person_photos.json").values():
        if not all(face["name"] in people for face in faces):
            continue
        boxes = np.array([face["box"] for face in faces]) * enlarged
        boxes[:, :2] -= boxes[:, :2].min(axis=0)
        width, height = (boxes[:, :2] + boxes[:, 2:]).max(axis=0)
        canvas = np.full((height, width, 3), 90, np.uint8)
        placed = []
        for face, (x, y, w, h) in sorted(zip(faces, boxes, strict=True), key=lambda pair: -pair[1][2]):
            canvas[y : y + h, x : x + w] = cv2.resize(_read(lfw / "images" / face["image"]), (w, h))
            name = face["image"].split("/")[1]
            placed.append(Placed(face["name"], name, x + w / 2, y + h / 2, w * FACE_SHARE))
        yield TrueImage(_encoded(canvas, "JPEG"), tuple(placed))


def drawings(count: int, seed: int = 0) -> Iterator[Pixels]:
    """Yield pictures of 1600 x 1200 pixels without a face: clouds, circles, blocks, arcs, writing and noise."""
    rng = np.random.default_rng((seed, 60))
    width, height = 1600, 1200

    def place() -> tuple[int, int]:
        return int(rng.uniform(0, width)), int(rng.uniform(0, height))

    def colour() -> tuple[float, float, float]:
        red, green, blue = rng.uniform(0, 255, 3).tolist()
        return red, green, blue

    for number in range(count):
        canvas = np.full((height, width, 3), rng.uniform(0, 255, 3), np.uint8)
        for _ in range(300):
            x, y = place()
            across, down, filled = (int(side) for side in (*rng.uniform(4, 120, 2), rng.choice([-1, 2, 5])))
            if number % 6 == 1:
                cv2.circle(canvas, (x, y), across // 2, colour(), filled)
            elif number % 6 == 2:
                cv2.rectangle(canvas, (x, y), (x + across, y + down), colour(), filled)
            elif number % 6 == 3:
                turn, end = rng.uniform(0, 360), rng.uniform(90, 360)
                cv2.ellipse(canvas, (x, y), (across // 2, down // 2), turn, 0, end, colour(), filled)
            elif number % 6 == 4:
                word = "".join(map(chr, rng.integers(33, 126, 12).tolist()))
                cv2.putText(canvas, word, (x, y), int(rng.integers(0, 7)), rng.uniform(0.5, 4), colour(), 3)
        canvas = canvas.astype(np.float32)
        if number % 6 in (0, 5):
            for scale in (4, 10, 25, 60, 150):
                size = (max(2, height // scale), max(2, width // scale), 3)
                rough = rng.normal(0, 12 + scale * (0.5 if number % 6 else 0.1), size).astype(np.float32)
                canvas += cv2.resize(rough, (width, height), interpolation=cv2.INTER_CUBIC)
        canvas = cv2.GaussianBlur(canvas, (0, 0), 0.8) + rng.normal(0, 3, (height, width, 1))
        yield np.clip(canvas, 0, 255).astype(np.uint8)


def _read(path: Path) -> Pixels:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def _backdrop(picture: Pixels, rng: np.random.Generator) -> Pixels:
    small = cv2.GaussianBlur(cv2.resize(picture, (40, 30)), (0, 0), 2)
    wall = cv2.resize(small, (4000, 3000)) + rng.normal(0, GRAIN, (3000, 4000, 1)).astype(np.float32)
    return np.clip(wall, 0, 255).astype(np.uint8)


def _made_harder(picture: Pixels, rng: np.random.Generator) -> tuple[Pixels, str]:
    kind, chance = "plain", rng.random()
    if chance < 0.25:
        kind = "turned"
        turn = cv2.getRotationMatrix2D((125, 125), rng.uniform(15, 35) * rng.choice([-1, 1]), 1)
        picture = np.asarray(cv2.warpAffine(picture, turn, (250, 250), borderMode=cv2.BORDER_REFLECT))
    elif chance < 0.5:
        kind = "dark"
        dark = picture * rng.uniform(0.15, 0.35) + rng.normal(0, 2.5, picture.shape)
        picture = np.clip(dark, 0, 255).astype(np.uint8)
    return picture, kind


def _paste(canvas: Pixels, picture: Pixels, left: int, top: int, side: int) -> None:
    how = cv2.INTER_AREA if side < len(picture) else cv2.INTER_CUBIC
    scaled, edge = cv2.resize(picture, (side, side), interpolation=how), max(2, side // 14)
    mask = np.zeros((side, side), np.float32)
    mask[edge:-edge, edge:-edge] = 1
    mask = cv2.GaussianBlur(mask, (0, 0), edge / 2)[..., None]
    part = canvas[top : top + side, left : left + side]
    part[:] = (part * (1 - mask) + scaled * mask).astype(np.uint8)


def _encoded(pixels: Pixels, kind: str) -> bytes:
    if kind == "HEIC":
        import pillow_heif

        pillow_heif.register_heif_opener()
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    image.save(file, "HEIF", quality=60) if kind == "HEIC" else image.save(file, "JPEG", quality=90)
    return file.getvalue()
