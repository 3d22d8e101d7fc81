"""Faces as photos: folders of identities, or crops held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setnet.errors import TrainingError
from setnet.learn.data.augment import Pixels, centre_crop, random_crop
from setnet.learn.data.face_places import cut_face, face_places, identity_photos, read_photo
from setnet.learn.data.source import LabelledSource
from setnet.learn.models.backbones.backbone import InputSpec
from setnet.learn.training.training_settings import AugmentSettings


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

    Where the faces are is kept in `places`, a file; without it, it is found anew each time.
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
