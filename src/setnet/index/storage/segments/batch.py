"""Items that a caller of `add` gives, as rows that can be written like those of a segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.storage.segments.segment import Texts


@dataclass(frozen=True)
class Batch:
    """Rows given by a caller of `add`; read like a `Segment` when they are written."""

    ids: Sequence[str]
    seq: NDArray[np.int64]
    counts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    elements: NDArray[Any]
    attributes: Sequence[str] | None
    set_codes: NDArray[np.uint8]
    set_scales: NDArray[np.float32]

    def texts(self, name: str) -> Texts | None:
        """Return all ids, or attributes as JSON, one after another in UTF-8; None when no row has any."""
        texts = self.ids if name == "id" else self.attributes
        return None if texts is None else _joined(texts)

    def sets_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return codes and scales of set vectors."""
        if (rows[1:] - rows[:-1] == 1).all():  # nearly always
            part = slice(rows[0], rows[-1] + 1)
            return self.set_codes[part], self.set_scales[part]
        return self.set_codes[rows], self.set_scales[rows]


def _joined(texts: Sequence[str]) -> Texts:
    """Return where each text begins in the bytes of all of them, and these bytes."""
    data = "".join(texts).encode()
    ends = np.fromiter(accumulate(map(len, texts)), np.int64, len(texts))
    if len(texts) and ends[-1] != len(data):  # not all of it is ASCII
        ends = np.fromiter(accumulate(len(text.encode()) for text in texts), np.int64, len(texts))
    return np.concatenate([[0], ends]), np.frombuffer(data, np.uint8)
