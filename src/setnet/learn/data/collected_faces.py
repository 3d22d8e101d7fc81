"""Faces cut out of the photos of a collected data set, where several people stand in each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.collect import CollectedSet
from setnet.learn.data.augment import Pixels
from setnet.learn.data.face_places import cut_face, read_photo
from setnet.learn.data.face_source import FaceSource
from setnet.learn.models.backbones.backbone import InputSpec
from setnet.learn.training.training_settings import AugmentSettings


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
