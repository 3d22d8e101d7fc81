"""Faces to train on: found in photos, cut out and augmented."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from setnet.collect import CollectedSet
from setnet.errors import PhotoError, TrainingError
from setnet.faces import Detector, FaceSettings, load_detector
from setnet.faces.align import box_crop, five_point_crop
from setnet.sandbox import unordered_map
from setnet.system import usable_cores
from setnet.train.backbones import InputSpec
from setnet.train.settings import AugmentSettings
from setnet.train.sources import SECONDS_BETWEEN_LINES, LabelledSource

Pixels = NDArray[np.uint8]


def random_crop(
    pixels: Pixels, spec: InputSpec, settings: AugmentSettings, rng: np.random.Generator
) -> Pixels:
    """Return a training crop: scaled to `short_side`, rotated, a random square of it, flipped."""
    height, width = pixels.shape[:2]
    scale = settings.short_side / min(height, width)
    room_x, room_y = width * scale - spec.size, height * scale - spec.size
    left, top = rng.uniform(0, max(room_x, 0)), rng.uniform(0, max(room_y, 0))
    angle = rng.uniform(-settings.rotation, settings.rotation)
    flip = settings.flip and rng.random() < 0.5
    return _warp(pixels, spec.size, scale, left, top, angle, flip)


def centre_crop(pixels: Pixels, spec: InputSpec) -> Pixels:
    """Return the test crop: short side to the spec's size, the central square."""
    height, width = pixels.shape[:2]
    scale = spec.size / min(height, width)
    left, top = (width * scale - spec.size) / 2, (height * scale - spec.size) / 2
    return _warp(pixels, spec.size, scale, left, top, 0.0, False)


def _warp(
    pixels: Pixels, size: int, scale: float, left: float, top: float, angle: float, flip: bool
) -> Pixels:
    # One interpolation does it all; a strong reduction is averaged first, or it would alias.
    if scale < 0.5:
        shrink = (max(size, round(pixels.shape[1] * scale)), max(size, round(pixels.shape[0] * scale)))
        scale *= pixels.shape[1] / shrink[0]
        pixels = np.asarray(cv2.resize(pixels, shrink, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    height, width = pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, scale)
    # Rotation keeps the centre in place; scaling must keep the corner instead, half a pixel before the first.
    matrix[:, 2] += (np.array([width, height]) / 2) * (scale - 1) - np.array([left, top])
    if flip:
        matrix[0] = -matrix[0]
        matrix[0, 2] += size - 1
    out = cv2.warpAffine(
        pixels, matrix, (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101
    )
    return np.asarray(out, dtype=np.uint8)


SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png", ".webp"}
_RECORD = np.dtype([("photo", "<u8"), ("place", "<f4", 14)])  # in a file of places: the name's hash first
KEPT_EVERY = 2000  # photos; a run that is stopped loses less than these
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

    Places are appended to the file `cache` as they are found, and are not looked for again.
    """
    keys = np.array([_key(path) for path in paths], np.uint64)
    places = np.full((len(paths), 14), np.inf, np.float32)
    if cache is not None and cache.is_file():
        known = np.fromfile(cache, _RECORD)  # without a record that was being written when its process ended
        order = np.argsort(known["photo"])
        at = np.searchsorted(known["photo"], keys, sorter=order).clip(max=max(0, len(known) - 1))
        if len(known):
            is_known = known["photo"][order[at]] == keys
            places[is_known] = known["place"][order[at[is_known]]]
        with cache.open("r+b") as file:
            file.truncate(len(known) * _RECORD.itemsize)
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
            append_places(cache, [paths[row] for row in part], places[part])
        if time.monotonic() - logged > SECONDS_BETWEEN_LINES:
            logged = time.monotonic()
            logger.info("looking for faces: %s of %s photos", min(done + KEPT_EVERY, len(left)), len(left))
    return places


def append_places(cache: Path, paths: Sequence[Path], places: Place) -> None:
    """Add the places of faces in photos to a file."""
    cache.parent.mkdir(parents=True, exist_ok=True)
    records = np.empty(len(paths), _RECORD)
    records["photo"], records["place"] = [_key(path) for path in paths], places
    with cache.open("ab") as file:
        file.write(records.tobytes())


def _key(path: Path) -> int:
    name = f"{path.parent.name}/{path.name}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little")


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


class FaceSource(LabelledSource):
    """Labelled face photos."""

    def __init__(
        self, labels: NDArray[np.int64], spec: InputSpec, augment: AugmentSettings, where: str
    ) -> None:
        super().__init__(labels, where)
        self.spec, self.augment = spec, augment
        self._mean = np.array(spec.mean, dtype=np.float32)
        self._std = np.array(spec.std, dtype=np.float32)

    def pixels(self, index: int) -> Pixels:
        """Return one face, RGB, at its stored size."""
        raise NotImplementedError

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the faces, (n, 3, size, size): augmented if each has its stream, else centre crops."""
        size = self.spec.size
        out = np.empty((len(picks), size, size, 3), dtype=np.float32)
        for row, index in enumerate(picks):
            pixels = self.pixels(int(index))
            if streams is None:
                out[row] = centre_crop(pixels, self.spec)
            else:
                out[row] = random_crop(pixels, self.spec, self.augment, streams[row])
        out -= self._mean
        out /= self._std
        # The array is channels-last in memory already, which is the fast layout for convolutions on a CPU.
        return torch.from_numpy(out).permute(0, 3, 1, 2)


class FacePhotos(FaceSource):
    """Photos with one labelled face each, read when needed and cut as at run time.

    Where the faces are is kept in `places`, a file; without it, it is found again each time.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        labels: NDArray[np.int64],
        spec: InputSpec,
        augment: AugmentSettings,
        where: str,
        places: Path | None = None,
    ) -> None:
        self.paths = paths
        super().__init__(labels, spec, augment, where)
        self._places = face_places(paths, places)

    @property
    def has_face(self) -> NDArray[np.bool_]:
        """In which photos a face was found; of others the middle is taken."""
        return np.asarray(~np.isnan(self._places[:, 0]))

    def pixels(self, index: int) -> Pixels:
        """Return the face of one photo, RGB."""
        photo = read_photo(self.paths[index])
        return cut_face(photo, self._places[index], self.augment.short_side, self.spec.align)


class FaceFolder(FacePhotos):
    """Photos in ``root/identity/*.jpg`` (VGGFace2, LFW and such)."""

    def __init__(
        self, root: Path, spec: InputSpec, augment: AugmentSettings, places: Path | None = None
    ) -> None:
        if not root.is_dir():
            raise TrainingError(
                f"{root}: no such folder; expected one folder per person with their photos in it"
            )
        found = identity_photos(root)
        paths = [path for photos in found for path in photos]
        labels = np.repeat(np.arange(len(found)), [len(photos) for photos in found]).astype(np.int64)
        super().__init__(paths, labels, spec, augment, str(root), places)


class FaceArray(FaceSource):
    """Face crops in memory, (n, height, width, 3) uint8 RGB."""

    def __init__(
        self,
        crops: NDArray[np.uint8],
        labels: NDArray[np.int64],
        spec: InputSpec,
        augment: AugmentSettings,
        where: str = "face array",
    ) -> None:
        if crops.ndim != 4 or crops.shape[3] != 3 or len(crops) != len(labels):
            raise TrainingError(
                f"{where}: expected (n, h, w, 3) crops with n labels, got {crops.shape}, {len(labels)}"
            )
        super().__init__(labels, spec, augment, where)
        self.crops = crops

    def pixels(self, index: int) -> Pixels:
        """Return one crop."""
        return np.asarray(self.crops[index])


class CollectedFaces(FaceSource):
    """The labelled faces of a data set's training people."""

    def __init__(self, data: Path, spec: InputSpec, augment: AugmentSettings) -> None:
        collected = CollectedSet(data)
        self._files: list[Path] = []
        self._places: list[NDArray[np.float32]] = []
        names: list[str] = []
        for row in collected.rows("train"):
            for face in row["faces"]:
                if face["name"]:
                    names.append(face["name"])
                    self._files.append(collected.photo_file(row))
                    self._places.append(collected.place(face))
        _, labels = np.unique(np.array(names, dtype=np.str_), return_inverse=True)
        super().__init__(labels.astype(np.int64), spec, augment, str(data))

    def pixels(self, index: int) -> Pixels:
        """Return one face, RGB."""
        photo = read_photo(self._files[index])
        return cut_face(photo, self._places[index], self.augment.short_side, self.spec.align)


@dataclass(frozen=True, eq=False)
class Crops:
    """Face crops, (n, size, size, 3) uint8 RGB, and whose they are; `missed` had no face found."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.str_]
    missed: int


def align_crops(root: Path, size: int, cache: Path) -> Crops:
    """Return a crop of the face nearest the centre of each photo in ``root/identity/``, aligned.

    The crops are kept in `cache` (an `.npz`) and read from there the next time.
    """
    if not cache.is_file():
        photos = identity_photos(root) if root.is_dir() else []
        if not photos:
            raise TrainingError(f"{root}: no folders of identities; expected root/person/photo.jpg")
        paths = [path for own in photos for path in own]
        places = face_places(paths, cache.with_name("places.bin"))
        pixels = np.empty((len(paths), size, size, 3), dtype=np.uint8)
        for row, path in enumerate(paths):
            pixels[row] = cut_face(read_photo(path), places[row], size, "five-point")
        labels = np.array([path.parent.name for path in paths], dtype=np.str_)
        fresh = cache.with_suffix(".tmp.npz")
        np.savez(fresh, pixels=pixels, labels=labels, missed=int(np.isnan(places[:, 0]).sum()))
        fresh.replace(cache)
    with np.load(cache, allow_pickle=False) as file:
        crops = Crops(file["pixels"], file["labels"], int(file["missed"]))
    if crops.pixels.shape[1] != size:
        raise TrainingError(
            f"{cache}: crops of {crops.pixels.shape[1]} pixels, {size} wanted; remove this file"
        )
    return crops
