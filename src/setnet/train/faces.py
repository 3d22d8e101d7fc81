"""Faces to train on: found in photos, cut out and augmented."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
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
from setnet.faces.align import TEMPLATE, box_crop, five_point_crop, similarity_transform
from setnet.sandbox import unordered_map
from setnet.system import usable_cores
from setnet.train.backbones import InputSpec
from setnet.train.loop import SECONDS_BETWEEN_LINES
from setnet.train.settings import AugmentSettings
from setnet.train.sources import LabelledSource

Pixels = NDArray[np.uint8]
Place = NDArray[np.float32]  # box and landmarks, 14 numbers; NaN where no face is found
EXTEND = 0.3  # by how much of its sides a box grows, as for VGGFace2


def random_crop(
    pixels: Pixels,
    spec: InputSpec,
    settings: AugmentSettings,
    rng: np.random.Generator,
    place: Place | None = None,
) -> Pixels:
    """Return a training crop: the face at `short_side`, rotated, a random square of it, flipped.

    It is sampled from the photo at once: turned corners show what is beside the face, the longer side of a
    box enters. Without a `place` the whole picture is the face.
    """
    matrix, width, height = _frame(pixels, place, settings.short_side, spec.align)
    left, top = rng.uniform(0, max(width - spec.size, 0)), rng.uniform(0, max(height - spec.size, 0))
    angle = rng.uniform(-settings.rotation, settings.rotation)
    turn = np.array(cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1.0), np.float64)
    turn[:, 2] -= np.array([left, top])
    if settings.flip and rng.random() < 0.5:
        turn[0] = -turn[0]
        turn[0, 2] += spec.size - 1
    return _sample(pixels, _compose(turn, matrix), spec.size)


def centre_crop(pixels: Pixels, spec: InputSpec) -> Pixels:
    """Return the test crop of a picture that is a face: short side to the spec's size, the central square."""
    matrix, width, height = _frame(pixels, None, spec.size, spec.align)
    matrix[:, 2] -= (np.array([width, height]) - spec.size) / 2
    return _sample(pixels, matrix, spec.size)


Matrix = NDArray[np.float64]  # 2 x 3, from centres of pixels to centres of pixels


def _frame(pixels: Pixels, place: Place | None, short_side: int, align: str) -> tuple[Matrix, float, float]:
    """Return what maps a photo to its face at `short_side`, and the face's width and height there."""
    height, width = pixels.shape[:2]
    x0, y0, x1, y1 = 0.0, 0.0, float(width), float(height)
    if place is not None and np.isnan(place).any():
        x0, y0, x1, y1 = _middle(pixels)
    elif place is not None and align == "five-point":
        points = TEMPLATE * (short_side / 112)
        return similarity_transform(place[4:].reshape(5, 2), points), short_side, short_side
    elif place is not None:
        x0, y0, x1, y1 = place[:4].tolist()
        more_x, more_y = EXTEND / 2 * (x1 - x0), EXTEND / 2 * (y1 - y0)
        x0, y0, x1, y1 = x0 - more_x, y0 - more_y, x1 + more_x, y1 + more_y
    scale = short_side / max(1.0, min(x1 - x0, y1 - y0))
    shift = scale * (0.5 - np.array([x0, y0])) - 0.5
    matrix = np.column_stack([scale * np.eye(2), shift])
    return matrix, (x1 - x0) * scale, (y1 - y0) * scale


def _compose(second: Matrix, first: Matrix) -> Matrix:
    return np.asarray(second @ np.vstack([first, [0.0, 0.0, 1.0]]))


def _sample(pixels: Pixels, matrix: Matrix, size: int) -> Pixels:
    """Return the square that a matrix maps to; a strong reduction is averaged first, or it would alias."""
    shrink = int(1 / max(np.hypot(matrix[0, 0], matrix[1, 0]), 1e-3))
    if shrink >= 2:
        corners = np.array([[0, 0, 1], [size, 0, 1], [0, size, 1], [size, size, 1]])
        corners = corners @ cv2.invertAffineTransform(matrix).T
        end = np.array([pixels.shape[1], pixels.shape[0]])
        low = np.clip(np.floor(corners.min(0)).astype(int) - 2 * shrink, 0, end - 1)
        high = np.clip(np.ceil(corners.max(0)).astype(int) + 2 * shrink, low + 1, end)
        columns, rows = np.maximum((high - low) // shrink, 1).tolist()
        part = pixels[low[1] : low[1] + rows * shrink, low[0] : low[0] + columns * shrink]
        pixels = np.asarray(cv2.resize(part, (columns, rows), interpolation=cv2.INTER_AREA), np.uint8)
        # The centre of the first small pixel lies in the middle of those that it averages.
        matrix = _compose(matrix, np.column_stack([shrink * np.eye(2), low + (shrink - 1) / 2]))
    out = cv2.warpAffine(
        pixels, matrix, (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101
    )
    return np.asarray(out, dtype=np.uint8)


SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png", ".webp"}
_RECORD = np.dtype([("photo", "<u8"), ("place", "<f4", 14)])  # in a file of places: the name's hash first
KEPT_EVERY = 2000  # photos; a run that is stopped loses less than these
WITHOUT_FACE = 9 / 20  # of a photo's shorter side: what its middle shows where no face is found
logger = logging.getLogger(__name__)


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
        return box_crop(image, _middle(image), size, extend=0.0)
    if align == "box":
        x0, y0, x1, y1 = place[:4].tolist()
        return box_crop(image, (x0, y0, x1, y1), size, EXTEND)
    return five_point_crop(image, place[4:].reshape(5, 2), size)


def _middle(image: Pixels) -> tuple[float, float, float, float]:
    side = max(1, int(min(image.shape[:2]) * WITHOUT_FACE))
    left, top = (image.shape[1] - side) / 2, (image.shape[0] - side) / 2
    return left, top, left + side, top + side


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
        """Return one picture, RGB."""
        raise NotImplementedError

    def place(self, index: int) -> Place | None:
        """Return where the face is in a picture; None where it is a face as a whole."""
        return None

    def load(self, picks: NDArray[Any], streams: Sequence[np.random.Generator] | None) -> Tensor:
        """Return the faces, (n, 3, size, size): augmented if each has its stream, else cut as at run time."""
        size = self.spec.size
        out = np.empty((len(picks), size, size, 3), dtype=np.float32)
        for row, index in enumerate(picks):
            pixels, place = self.pixels(int(index)), self.place(int(index))
            if streams is not None:
                out[row] = random_crop(pixels, self.spec, self.augment, streams[row], place)
            elif place is None:
                out[row] = centre_crop(pixels, self.spec)
            else:
                out[row] = cut_face(pixels, place, size, self.spec.align)
        out -= self._mean
        out /= self._std
        # The array is channels-last in memory already, which is the fast layout for convolutions on a CPU.
        return torch.from_numpy(out).permute(0, 3, 1, 2)


class FacePhotos(FaceSource):
    """Photos with one labelled face each, read when needed.

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
        """Return one photo, RGB."""
        return read_photo(self.paths[index])

    def place(self, index: int) -> Place:
        """Return where the face is in a photo."""
        return np.asarray(self._places[index])


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
        """Return one photo, RGB."""
        return read_photo(self._files[index])

    def place(self, index: int) -> Place:
        """Return where the face is in a photo."""
        return self._places[index]
