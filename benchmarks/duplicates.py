"""How well `setnet duplicates` finds altered copies of LFW's photos, beside perceptual hashes, and at scale.

    python benchmarks/duplicates.py learn                  # the shipped vocabulary, from the training half
    python benchmarks/duplicates.py quality [--planted 200] [--others 1500] [--json FILE] [--page docs/library.md]
    python benchmarks/duplicates.py scale [--photos 100000] [--json FILE] [--page docs/library.md]

`quality` plants altered copies of some photos among others of the same half of LFW's people. Thresholds are the
lowest that reach a precision on the training half; recall and precision are of the test half. A pair is a copy
or an original with an original; pairs that show one press photo, or are listed as one photograph twice, do not
count. All methods may mirror. `--pairs FILE` lists the wrong pairs that agree most, to look at them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import cv2
import numpy as np
from numpy.typing import NDArray
from perceptual_hashes import HASHES
from performance_page import machine, write_section

from setnet.evaluate.data.planted_copies import ALTERATIONS, altered
from setnet.evaluate.data.splits import read_press_photos, read_split
from setnet.faces import open_photo
from setnet.library.duplicates.candidates import candidates
from setnet.library.duplicates.dense_sift import DIM, dense_sift, small_grey
from setnet.library.duplicates.find import AGREEMENT
from setnet.library.duplicates.photo_pairs import PhotoPairs
from setnet.library.duplicates.vlad import photo_vlads
from setnet.library.duplicates.vocabulary import SHIPPED, learn_vocabulary
from setnet.system import peak_memory, usable_cores

LFW = Path(__file__).parents[2] / "shared" / "data" / "lfw"
DUPLICATES = Path(__file__).parents[1] / "src" / "setnet" / "library" / "duplicates"
PRECISIONS = (0.99, 0.999)
VLAD, OURS = "VLAD alone", "setnet duplicates"


@dataclass(frozen=True, eq=False)
class Collection:
    """Photos of one half, and copies of the first `planted` of them, as files.

    `source` is the number of the photo that a file shows, `kind` the alteration of a copy (-1: an original).
    `same` has pairs of originals that are one photograph.
    """

    files: list[Path]
    names: list[str]
    source: NDArray[np.int64]
    kind: NDArray[np.int64]
    same: set[tuple[int, int]]

    @property
    def originals(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.kind < 0)

    def counts(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which pairs of files are to be judged: not those of photos that are the same anyway."""
        a, b = self.source[one], self.source[other]
        neutral = [(x, y) in self.same or (y, x) in self.same for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        return ~np.array(neutral, bool)


def names_of(photos: Path, half: str) -> list[str]:
    people = getattr(read_split(), half)
    found = (f"{path.parent.name}/{path.name}" for path in photos.glob("*/*.jpg") if path.parent.name in people)
    return sorted(found)


def collected(lfw: Path, half: str, planted: int, others: int, folder: Path) -> Collection:
    rng = np.random.default_rng(1)
    names = rng.permutation(names_of(lfw / "images", half))[: planted + others].tolist()
    files, source, kind = [lfw / "images" / name for name in names], list(range(len(names))), [-1] * len(names)
    for number, name in enumerate(names[:planted]):
        pixels = open_photo(files[number]).pixels
        for way, alteration in enumerate(ALTERATIONS):
            copy = altered(pixels, alteration, zlib.crc32(name.encode()))
            quality = 30 if alteration == "JPEG quality 30" else 90
            file = folder / f"{half}-{number:05}-{way}.jpg"
            cv2.imwrite(str(file), copy[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
            files.append(file)
            source.append(number)
            kind.append(way)
    same = known_pairs(lfw, {name: number for number, name in enumerate(names)})
    return Collection(files, names, np.array(source), np.array(kind), same)


def known_pairs(lfw: Path, numbers: dict[str, int]) -> set[tuple[int, int]]:
    """Return pairs of photos that are parts of one press photo, or one photograph twice (seen by eye)."""
    groups = [[face_name(face) for face in faces] for faces in
              read_press_photos(lfw / "lists" / "multi_person_photos.json").values()]
    seen = DUPLICATES.parents[1] / "evaluate" / "data" / "lfw_duplicates.json"
    groups += json.loads(seen.read_text(encoding="utf-8")) if seen.is_file() else []
    found = set()
    for group in groups:
        known = [numbers[name] for name in group if name in numbers]
        found |= {(a, b) for a in known for b in known if a < b}
    return found
