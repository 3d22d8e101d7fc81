"""An archive of group photos with captions, composed of LFW pictures; who stands where is known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setnet.durable import storage_errors
from setnet.evaluate.collecting.captions import CaptionNoise, caption
from setnet.evaluate.data.group_photos import Album, Placed, compose_album
from setnet.evaluate.data.planted_copies import ALTERATIONS, altered

MOST_PORTRAITS = 5
COPIED = 0.15
_STREAM = 11


@dataclass(frozen=True)
class CaptionedArchive:
    """Folders for `setnet collect`, and the ground truth.

    Attributes
    ----------
    placed
        For each photo file, who stands where; of a planted copy, of the photo it was made from.
    copies
        Planted copies, with the file each was made from.
    names
        The people in the list; everybody else in a photo is a stranger.
    """

    portraits: Path
    photos: Path
    placed: Mapping[str, tuple[Placed, ...]]
    copies: Mapping[str, str]
    names: frozenset[str]

    def pairs(self) -> set[tuple[str, str]]:
        """Return the pairs of people of the list who are together in some photo."""
        found = set()
        for placed in self.placed.values():
            people = sorted({p.person for p in placed} & self.names)
            found |= {(a, b) for i, a in enumerate(people) for b in people[i + 1 :]}
        return found


def compose_archive(
    lfw: Path, lists: Path, folder: Path, count: int, noise: CaptionNoise, seed: int = 0
) -> CaptionedArchive:
    """Compose the photos of `compose_album` with captions, portraits and planted near-duplicates.

    The people of the list are those with four pictures or more: half of their pictures stand in photos, up to
    five others are portraits. Copies have the caption of another agency: other noise about the same people.
    """
    album = compose_album(lfw, lists, folder, count, seed)
    rng = np.random.default_rng((seed, _STREAM))
    photos, portraits = folder / "photos", folder / "portraits"
    with storage_errors(folder, "cannot compose an archive in "):
        for name, files in album.query_pictures.items():
            (portraits / name).mkdir(parents=True, exist_ok=True)
            for file in files[:MOST_PORTRAITS]:
                if not (portraits / file).is_file():  # written again it would be described again
                    shutil.copyfile(lfw / file, portraits / file)
        copies = _plant(album, photos, rng)
        names = sorted(name.replace("_", " ") for name in album.query_pictures)
        captions = {}
        for file in (*album.photos, *copies):
            placed = album.photos[copies.get(file, file)]
            people = [p.person.replace("_", " ") for p in sorted(placed, key=lambda p: p.x)]
            others = [name for name in names if name not in people]
            captions[file] = caption(people, others, noise, rng)
        (photos / "captions.json").write_text(json.dumps(captions, indent=1), encoding="utf-8")
    placed_in = dict(album.photos) | {file: album.photos[source] for file, source in copies.items()}
    return CaptionedArchive(portraits, photos, placed_in, copies, frozenset(album.query_pictures))


def _plant(album: Album, photos: Path, rng: np.random.Generator) -> dict[str, str]:
    """Write altered copies of some photos, of every kind in turn; return what each was made from."""
    from PIL import Image

    sources = sorted(album.photos)
    chosen = rng.choice(len(sources), round(COPIED * len(sources)), replace=False)
    copies = {}
    for number, source in enumerate(sources[i] for i in np.sort(chosen).tolist()):
        kind = list(ALTERATIONS)[number % len(ALTERATIONS)]
        file = f"copy_{number:04}.jpg"
        copies[file] = source
        if not (photos / file).is_file():
            with Image.open(photos / source) as image:
                pixels = np.asarray(image.convert("RGB"))
            made = Image.fromarray(altered(pixels, kind, number))
            made.save(photos / file, quality=30 if "quality" in kind else 90)
    return copies
