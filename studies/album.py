"""Group photos composed of LFW pictures of test-half people, with the truth of who stands where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setnet.durable import storage_errors
from setnet.errors import InvalidInputError
from setnet.evaluate.people import read_press_photos, read_split

WIDTH, HEIGHT = 1280, 720
SIZES, SHARES = (2, 3, 4, 5, 6), (0.4, 0.25, 0.17, 0.1, 0.08)
MIN_TO_QUERY = 4
TRUTH = "truth.json"


@dataclass(frozen=True)
class Placed:
    """A person in a composed photo: who, from which picture, and where the middle of the face is."""

    person: str
    picture: str
    x: float
    y: float
    side: float


@dataclass(frozen=True)
class Album:
    """The composed photos, and for each person that may be queried the pictures to query with."""

    folder: Path
    photos: Mapping[str, tuple[Placed, ...]]
    query_pictures: Mapping[str, tuple[str, ...]]


def compose_album(lfw: Path, lists: Path, folder: Path, count: int, seed: int = 0) -> Album:
    """Compose ``count`` photos in ``folder``, or read them when they are there already.

    Groups follow LFW's press photos: the people of one such photo stand together, others join until the group
    has two to six. Only people of the test half are used. People of four pictures or more can be queried:
    half of their pictures stand in photos, half are for queries.
    """
    plan = {"count": count, "seed": seed}
    if (folder / TRUTH).is_file():
        album, made = _read(folder)
        if made != plan:
            raise InvalidInputError(
                f"{folder} holds an album of {made}, requested was {plan}: choose another folder"
            )
        return album
    rng = np.random.default_rng(seed)
    pictures = lfw_pictures(lfw)
    inside, query_pictures = {}, {}
    for name, files in pictures.items():
        mixed = [files[i] for i in rng.permutation(len(files))]
        half = len(files) // 2 if len(files) >= MIN_TO_QUERY else 0
        inside[name] = mixed[half:]
        if half:
            query_pictures[name] = tuple(mixed[:half])
    groups = _press_groups(lists, set(pictures))
    photos: dict[str, tuple[Placed, ...]] = {}
    with storage_errors(folder, "cannot compose photos in "):
        (folder / "photos").mkdir(parents=True, exist_ok=True)
        for number in range(count):
            people = _group(groups, sorted(query_pictures), rng)
            name = f"group_{number:04}.jpg"
            photos[name] = _compose(lfw, folder / "photos" / name, people, inside, rng)
        album = Album(folder, photos, query_pictures)
        stored = {
            "plan": plan,
            "photos": {name: [asdict(p) for p in placed] for name, placed in photos.items()},
            "query_pictures": query_pictures,
        }
        (folder / TRUTH).write_text(json.dumps(stored), encoding="utf-8")  # last: it says that all are there
    return album


def _read(folder: Path) -> tuple[Album, Mapping[str, Any]]:
    stored = json.loads((folder / TRUTH).read_text(encoding="utf-8"))
    photos = {name: tuple(Placed(**p) for p in placed) for name, placed in stored["photos"].items()}
    query_pictures = {name: tuple(files) for name, files in stored["query_pictures"].items()}
    return Album(folder, photos, query_pictures), stored["plan"]


def lfw_pictures(lfw: Path) -> dict[str, list[str]]:
    """Return the pictures of the test half's people, as ``Name/Name_0001.jpg``."""
    test = read_split().test
    found = {}
    for folder in sorted(lfw.iterdir()) if lfw.is_dir() else []:
        if folder.name in test:
            found[folder.name] = [f"{folder.name}/{file.name}" for file in sorted(folder.glob("*.jpg"))]
    if not any(len(files) >= MIN_TO_QUERY for files in found.values()):
        raise InvalidInputError(f"{lfw} does not hold LFW's folders of identities (Name/Name_0001.jpg)")
    return found


def _press_groups(lists: Path, known: set[str]) -> list[list[str]]:
    photos = read_press_photos(lists)
    groups = [sorted({face["name"] for face in faces} & known) for faces in photos.values()]
    return [group for group in groups if group]


def _group(groups: list[list[str]], candidates: list[str], rng: np.random.Generator) -> list[str]:
    people = list(groups[int(rng.integers(len(groups)))])
    size = int(rng.choice(SIZES, p=SHARES))
    while len(people) < size:
        more = str(candidates[int(rng.integers(len(candidates)))])
        if more not in people:
            people.append(more)
    return people[:6]


def _compose(
    lfw: Path, out: Path, people: list[str], inside: Mapping[str, list[str]], rng: np.random.Generator
) -> tuple[Placed, ...]:
    from PIL import Image, ImageEnhance, ImageFilter

    sky = rng.uniform(70, 190, 3)
    ramp = np.linspace(1.15, 0.75, HEIGHT)[:, None, None] * np.ones((1, WIDTH, 1)) * sky
    noise = rng.normal(0, 4, (HEIGHT, WIDTH, 1))
    canvas = Image.fromarray(np.clip(ramp + noise, 0, 255).astype(np.uint8))
    room = WIDTH / len(people)
    placed = []
    for place, person in enumerate(people):
        source = inside[person][int(rng.integers(len(inside[person])))]
        with Image.open(lfw / source) as opened:
            picture = opened.convert("RGB")
        cut = 0.16  # the margin of LFW's pictures shows other people's shoulders and ears
        w, h = picture.size
        picture = picture.crop((round(cut * w), round(cut * h), round((1 - cut) * w), round((1 - cut) * h)))
        # from people far back, whose faces have some 30 pixels, to people close by
        far = float(np.exp(rng.uniform(np.log(0.12), 0.0)))
        side = int(min(room * rng.uniform(0.75, 0.98), HEIGHT * 0.62 * far))
        picture = picture.resize((side, side), Image.Resampling.LANCZOS)
        picture = ImageEnhance.Brightness(picture).enhance(float(rng.uniform(0.35, 1.5)))
        picture = ImageEnhance.Contrast(picture).enhance(float(rng.uniform(0.5, 1.2)))
        if rng.random() < 0.3:  # moved, or out of focus
            picture = picture.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.5, 2.0))))
        left = int(room * place + (room - side) * rng.uniform(0.1, 0.9))
        top = int(rng.uniform(0.05, 0.95) * (HEIGHT - side))
        mask = Image.new("L", (side, side), 0)
        edge = max(2, side // 14)
        mask.paste(255, (edge, edge, side - edge, side - edge))
        canvas.paste(picture, (left, top), mask.filter(ImageFilter.GaussianBlur(edge / 2)))
        placed.append(Placed(person, source, left + side / 2, top + side / 2, float(side)))
    canvas.save(out, quality=int(rng.integers(70, 95)))
    return tuple(placed)
