"""Photos made for experiments: composed groups of people, degraded and edited copies."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from setnet.durable import storage_errors
from setnet.errors import InvalidInputError, choice_error
from setnet.evaluate.people import half_of, read_press_photos, read_split
from setnet.sandbox import unordered_map
from setnet.system import usable_cores
from setnet.train import TrainingSettings
from setnet.train.faces import FacePhotos, identity_photos
from setnet.train.sface import SFace
from setnet.train.sources import cache_features

Pixels = NDArray[np.uint8]


def _coarse(photo: Pixels, rng: np.random.Generator) -> tuple[Pixels, int]:
    height, width = photo.shape[:2]
    scale = rng.uniform(0.3, 0.6)
    small = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    light = (cv2.resize(small, (width, height)) / 255.0) ** rng.uniform(0.5, 2.0) * rng.uniform(0.6, 1.2)
    light = (light + rng.normal(0, 0.03, light.shape)) * rng.uniform(0.85, 1.15, 3)
    return _pixels(light), int(rng.integers(20, 60))


def _shaken(photo: Pixels, rng: np.random.Generator) -> tuple[Pixels, int]:
    height, width = photo.shape[:2]
    length, angle = int(rng.integers(3, 10)), rng.uniform(0, math.pi)
    trace = np.zeros((length * 2 + 1,) * 2, np.float32)
    ends = [round(length + sign * length / 2 * f(angle)) for sign in (-1, 1) for f in (math.cos, math.sin)]
    cv2.line(trace, (ends[0], ends[1]), (ends[2], ends[3]), 1.0)
    blurred = cv2.filter2D(photo, -1, trace / trace.sum())
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-20, 20), rng.uniform(0.7, 1.0))
    turned = cv2.warpAffine(blurred, turn, (width, height), borderMode=cv2.BORDER_REFLECT)
    light = (turned / 255.0 - 0.5) * rng.uniform(0.4, 1.0) + rng.uniform(0.35, 0.65)
    if rng.random() < 0.5:  # a bar as wide as a hand, somewhere over the middle
        top = int(height * rng.uniform(0.3, 0.65))
        light[top : top + height // 12, width // 4 : width * 3 // 4] = rng.uniform(0, 1, 3)
    return _pixels(light), 90


def _small(photo: Pixels, rng: np.random.Generator) -> tuple[Pixels, int]:
    height, width = photo.shape[:2]
    scale = math.exp(rng.uniform(math.log(0.2), math.log(0.9)))
    small = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    top, left = (height - small.shape[0]) // 2, (width - small.shape[1]) // 2
    wall = np.full_like(photo, 128)
    wall[top : top + small.shape[0], left : left + small.shape[1]] = small
    return wall, 90


KINDS: dict[str, Callable[[Pixels, np.random.Generator], tuple[Pixels, int]]] = {
    "coarse": _coarse,
    "shaken": _shaken,
    "small": _small,
}


def degraded(photo: Pixels, kind: str, seed: int) -> tuple[Pixels, int]:
    """Return a degraded copy of a photo and the JPEG quality to store it with."""
    return KINDS[kind](photo, np.random.default_rng(seed))


def degrade_photos(photos: Path, out: Path, kind: str = "coarse") -> int:
    """Write a degraded copy of every JPEG photo below a folder; return how many there are.

    The copy is the same for the same name and kind.
    """
    if kind not in KINDS:
        raise choice_error("kind", kind, sorted(KINDS))
    names = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.jpg"))
    if not names:
        raise InvalidInputError(f"{photos} holds no .jpg photos: give a folder of photos")
    copy = partial(_copy, photos=photos, out=out, kind=kind)
    return sum(unordered_map(copy, names, usable_cores()))  # OpenCV lets other threads work beside it


def _pixels(light: NDArray[Any]) -> Pixels:
    return np.asarray(np.clip(light, 0, 1) * 255, dtype=np.uint8)


def _copy(name: str, photos: Path, out: Path, kind: str) -> int:
    photo = cv2.imread(str(photos / name))
    if photo is None:
        raise InvalidInputError(f"{photos / name} is not a photo that can be read")
    copy, quality = degraded(np.asarray(photo, np.uint8), kind, zlib.crc32(name.encode()))
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(out / name), copy, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return 1


WIDTH, HEIGHT = 1280, 720
SIZES, SHARES = (2, 3, 4, 5, 6), (0.4, 0.25, 0.17, 0.1, 0.08)
LEAST_TO_QUERY = 4
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
        half = len(files) // 2 if len(files) >= LEAST_TO_QUERY else 0
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


def read_album(folder: Path) -> Album:
    """Return an album composed before."""
    if not (folder / TRUTH).is_file():
        raise InvalidInputError(f"{folder} holds no composed photos: make them with `setnet evaluate photos`")
    return _read(folder)[0]


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
    if not any(len(files) >= LEAST_TO_QUERY for files in found.values()):
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


AS_THEY_ARE = "as they are"


@dataclass(frozen=True, eq=False)
class CopyFeatures:
    """Features of one kind of copies of photos.

    Attributes
    ----------
    features
        A row for each copy with a face.
    photos
        Which photo each row is a copy of.
    people
        The person of every photo, with a face or without.
    """

    features: NDArray[np.float16]
    photos: NDArray[np.int64]
    people: NDArray[np.str_]

    @property
    def labels(self) -> NDArray[np.str_]:
        """Whose face each row is."""
        return self.people[self.photos]


def photos_of_half(root: Path, half: str, most: int) -> list[str]:
    """Return ``person/photo.jpg`` of the first `most` photos of each person of a half of LFW's people."""
    if not root.is_dir():
        raise InvalidInputError(f"{root} is no folder: give LFW's folder of identities")
    found = identity_photos(root)
    names = np.array([photos[0].parent.name for photos in found])
    chosen = half_of(names, half)
    return [
        f"{path.parent.name}/{path.name}"
        for photos, wanted in zip(found, chosen, strict=True)
        if wanted
        for path in photos[:most]
    ]


def copy_features(
    root: Path, names: Sequence[str], network: SFace, last: int, settings: TrainingSettings, kept: Path
) -> CopyFeatures:
    """Return what SFace without its `last` blocks makes of the photos called `names` below `root`.

    Faces are looked for in each copy anew, as at run time. Places and features are kept as files that begin
    with the name `kept`.
    """
    paths = [root / name for name in names]
    if missing := [path for path in paths if not path.is_file()]:
        raise InvalidInputError(
            f"{missing[0]} is missing: make copies of all photos by `setnet evaluate degrade PHOTOS {root}`"
        )
    people = np.array([path.parent.name for path in paths])
    owner = np.unique(people, return_inverse=True)[1].astype(np.int64)
    places = kept.with_name(f"{kept.name}-places.bin")
    source = FacePhotos(paths, owner, network.spec, settings.augment, str(root), places)
    rows = np.flatnonzero(source.has_face)
    before, _ = network.split(last)
    features = cache_features(before, source, rows, kept.with_name(f"{kept.name}-features.npy"))
    return CopyFeatures(features, rows, people)


_WORDS = ("BREAKING NEWS", "(c) photo desk", "SAMPLE", "12 May, 18:30")


def _resized(photo: Pixels, rng: np.random.Generator) -> Pixels:
    scale = math.exp(rng.uniform(math.log(0.4), math.log(2.0)))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(photo, None, fx=scale, fy=scale, interpolation=way), np.uint8)


def _cropped(photo: Pixels, rng: np.random.Generator, share: float) -> Pixels:
    """Cut away a share of the width and of the height, at random sides."""
    height, width = photo.shape[:2]
    rows, columns = round(height * (1 - share)), round(width * (1 - share))
    top, left = rng.integers(0, height - rows + 1), rng.integers(0, width - columns + 1)
    return photo[top : top + rows, left : left + columns]


def _colours(photo: Pixels, rng: np.random.Generator) -> Pixels:
    light = (photo / 255.0) ** rng.uniform(0.6, 1.6) * rng.uniform(0.75, 1.25, 3)
    grey = light.mean(axis=2, keepdims=True)
    light = grey + (light - grey) * rng.choice([0.0, 0.5, 1.5])  # black and white, pale, garish
    return np.asarray(np.clip(light, 0, 1) * 255, np.uint8)


def _text(photo: Pixels, rng: np.random.Generator) -> Pixels:
    """Lay a banner with words over the photo, a seventh of its height."""
    copy = photo.copy()
    height, width = copy.shape[:2]
    top = int(height * rng.uniform(0.05, 0.8))
    cv2.rectangle(copy, (0, top), (width, top + height // 7), rng.integers(0, 256, 3).tolist(), -1)
    words, white = str(rng.choice(_WORDS)), (255, 255, 255)
    place = (width // 20, top + height // 9)
    cv2.putText(copy, words, place, cv2.FONT_HERSHEY_SIMPLEX, width / 300, white, max(1, width // 150))
    return copy


def _mirrored(photo: Pixels, rng: np.random.Generator) -> Pixels:
    return photo[:, ::-1]


def _combined(photo: Pixels, rng: np.random.Generator) -> Pixels:
    return _jpeg(_colours(_cropped(_resized(photo, rng), rng, 0.1), rng), 50)


def _jpeg(photo: Pixels, quality: int) -> Pixels:
    _, data = cv2.imencode(".jpg", photo[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert decoded is not None  # it was encoded a line above
    return np.asarray(decoded[..., ::-1], np.uint8)


ALTERATIONS: dict[str, Callable[[Pixels, np.random.Generator], Pixels]] = {
    "resized": _resized,
    "cropped by 5 %": lambda photo, rng: _cropped(photo, rng, 0.05),
    "cropped by 10 %": lambda photo, rng: _cropped(photo, rng, 0.1),
    "cropped by 20 %": lambda photo, rng: _cropped(photo, rng, 0.2),
    "JPEG quality 30": lambda photo, rng: _jpeg(photo, 30),
    "colours": _colours,
    "text laid over": _text,
    "mirrored": _mirrored,
    "mirrored, cropped by 10 %": lambda photo, rng: _cropped(photo[:, ::-1], rng, 0.1),
    "resized, cropped, colours, JPEG": _combined,
}


def altered(photo: Pixels, kind: str, seed: int) -> Pixels:
    """Return an altered copy of an RGB photo, `kind` being one of `ALTERATIONS`; one seed, one copy."""
    rng = np.random.default_rng((seed, list(ALTERATIONS).index(kind)))
    return np.ascontiguousarray(ALTERATIONS[kind](photo, rng))
