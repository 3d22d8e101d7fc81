"""Pictures of characters as a training source."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.learn.data.augment import Pixels
from setnet.learn.data.face_source import FaceSource
from setnet.learn.data.glyphs import Glyphs
from setnet.learn.models.backbones.backbone import InputSpec
from setnet.learn.training.training_settings import AugmentSettings


class GlyphSource(FaceSource):
    """Some of the pictures of `Glyphs`; the characters are the identities."""

    def __init__(
        self, glyphs: Glyphs, rows: NDArray[np.int64], spec: InputSpec, augment: AugmentSettings
    ) -> None:
        super().__init__(glyphs.characters[rows], spec, augment, "glyphs")
        self._pictures, self._rows = glyphs.pictures, rows

    def pixels(self, index: int) -> Pixels:
        """Return one picture, the same in all three channels."""
        grey = self._pictures[self._rows[index]]
        return np.repeat(grey[:, :, None], 3, axis=2)
