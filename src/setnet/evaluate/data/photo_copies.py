"""Photos of LFW and degraded copies of them, divided by people, as features of a frozen network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.data.splits import half_of
from setnet.train import FacePhotos, SFace, TrainingSettings, identity_photos, kept_features

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
    places = kept.with_name(f"{kept.name}-places.npz")
    source = FacePhotos(paths, owner, network.spec, settings.augment, str(root), places)
    rows = np.flatnonzero(source.has_face)
    before, _ = network.divided(last)
    features = kept_features(before, source, rows, kept.with_name(f"{kept.name}-features.npy"))
    return CopyFeatures(features, rows, people)
