"""Aligned face crops of folders of identities, cut once and kept beside a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import TrainingError
from setnet.learn.data.face_places import cut_face, face_places, identity_photos, read_photo


@dataclass(frozen=True, eq=False)
class Crops:
    """Face crops, (n, size, size, 3) uint8 RGB, and whose they are; `missed` had no face found."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.str_]
    missed: int


def aligned_crops(root: Path, size: int, cache: Path) -> Crops:
    """Return a crop of the face nearest the centre of each photo in ``root/identity/``, aligned.

    The crops are kept in `cache` (an `.npz`) and read from there the next time.
    """
    if not cache.is_file():
        photos = identity_photos(root) if root.is_dir() else []
        if not photos:
            raise TrainingError(f"{root}: no folders of identities; expected root/person/photo.jpg")
        paths = [path for own in photos for path in own]
        places = face_places(paths, cache.with_name("places.npz"))
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
