"""Where the face is in each training photo, found once and kept: training cuts faces as run time does."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from setnet.errors import PhotoError
from setnet.faces import Detector, FaceSettings, box_crop, five_point_crop, load_detector
from setnet.learn.data.augment import Pixels
from setnet.sandbox import unordered_map
from setnet.system import usable_cores

SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png", ".webp"}
KEPT_EVERY = 2000  # photos; a run that is stopped loses less than these
SECONDS_BETWEEN_LINES = 5.0
WITHOUT_FACE = 9 / 20  # of a photo's shorter side: what its middle shows where no face is found
logger = logging.getLogger(__name__)
Place = NDArray[np.float32]  # box and landmarks, 14 numbers; NaN where no face is found


def identity_photos(root: Path) -> list[list[Path]]:
    """Return the photos of each identity in ``root/identity/``, sorted."""
    folders = [folder for folder in sorted(root.iterdir()) if folder.is_dir()]
    found = [sorted(p for p in f.iterdir() if p.suffix.lower() in SUFFIXES) for f in folders]
    return [photos for photos in found if photos]


def read_photo(path: Path) -> Pixels:
    """Return a photo's pixels, RGB."""
    try:
        with Image.open(path) as photo:
            return np.asarray(photo.convert("RGB"), dtype=np.uint8)
    except (OSError, UnidentifiedImageError) as error:
        raise PhotoError(f"{path}: cannot be read ({error}); remove it or replace it") from error


def face_places(paths: Sequence[Path], cache: Path | None = None) -> Place:
    """Return the place of the face nearest the middle of each photo, a row each.

    Places are kept in `cache` (an `.npz`) as they are found; those that are there are not looked for again.
    """
    names = np.array([f"{path.parent.name}/{path.name}" for path in paths])
    places = np.full((len(paths), 14), np.inf, np.float32)
    if cache is not None and cache.is_file():
        with np.load(cache, allow_pickle=False) as file:
            known = dict(zip(file["names"].tolist(), file["places"], strict=True))
        for row in (row for row, name in enumerate(names) if str(name) in known):
            places[row] = known[str(names[row])]
    left = np.flatnonzero(np.isinf(places[:, 0])).tolist()
    detector = load_detector(FaceSettings().detector) if left else None
    logged = time.monotonic()
    for done in range(0, len(left), KEPT_EVERY):
        part = left[done : done + KEPT_EVERY]
        assert detector is not None
        for row, place in unordered_map(
            lambda row: (row, _place(paths[row], detector)), part, usable_cores()
        ):
            places[row] = place
        if cache is not None:
            _keep(cache, names, places)
        if time.monotonic() - logged > SECONDS_BETWEEN_LINES:
            logged = time.monotonic()
            logger.info("looking for faces: %s of %s photos", min(done + KEPT_EVERY, len(left)), len(left))
    return places


def _place(path: Path, detector: Detector) -> Place:
    image = read_photo(path)
    settings = FaceSettings()
    found = detector.detect(
        image,
        min_face=min(settings.min_face, min(image.shape[:2]) / 4),
        threshold=detector.default_threshold,
        longest_side=settings.longest_side,
    )
    if not len(found):
        return np.full(14, np.nan, np.float32)
    middle = np.array([image.shape[1], image.shape[0]]) / 2
    nearest = int((((found.boxes[:, :2] + found.boxes[:, 2:]) / 2 - middle) ** 2).sum(axis=1).argmin())
    return np.concatenate([found.boxes[nearest], found.landmarks[nearest].ravel()]).astype(np.float32)


def _keep(cache: Path, names: NDArray[np.str_], places: Place) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    fresh = cache.with_suffix(".tmp.npz")
    seen = ~np.isinf(places[:, 0])
    np.savez(fresh, names=names[seen], places=places[seen])
    fresh.replace(cache)


def cut_face(image: Pixels, place: Place, size: int, align: str) -> Pixels:
    """Return the face as a square crop, aligned as a descriptor of that kind is given it at run time."""
    if np.isnan(place).any():  # such collections are centred on the labelled person
        side = max(1, int(min(image.shape[:2]) * WITHOUT_FACE))
        left, top = (image.shape[1] - side) / 2, (image.shape[0] - side) / 2
        return box_crop(image, (left, top, left + side, top + side), size, extend=0.0)
    if align == "box":
        x0, y0, x1, y1 = place[:4].tolist()
        return box_crop(image, (x0, y0, x1, y1), size)
    return five_point_crop(image, place[4:].reshape(5, 2), size)
