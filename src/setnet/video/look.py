"""A picture of a video that was looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """A picture at a time of a video, in seconds; `frame` is upright, (rows, columns, 3), blue first."""

    time: float
    frame: NDArray[np.uint8]

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """The picture with red first, as `setnet.faces` takes it."""
        import cv2

        return np.asarray(cv2.cvtColor(self.frame, cv2.COLOR_BGR2RGB), np.uint8)
