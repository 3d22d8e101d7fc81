"""How well names of photos find their faces, on photos composed of faces of LFW, whose truth is known.

    python -m studies.names_without_boxes DESCRIPTORS [--half test] [--json FILE]

DESCRIPTORS is what `setnet describe` writes for the photos of LFW. A photo shows one to five people of a
circle of eight, and up to two passers-by without a name. In one of twenty cases a named person's face is not
in the photo, in one of twenty a person's name is missing. Each face of LFW is in one photo. Precision is of
the faces that got a name without a question, recall of all faces whose name the photo has. The rule was
chosen on the training half.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.people import half_of
from setnet.faces.settings import load_calibration
from setnet.library import read_descriptors
from setnet.library.name_solver import PhotoWithNames, solve_names
from setnet.library.score_calibration import ScoreCalibration
from studies.matching_faces import corrected

PER_NAME = ((2, 2), (3, 4), (5, 9), (10, 20))  # how many photos each name has, from and to
CIRCLE, MOST_TOGETHER = 8, 5
PASSER_BY, NO_FACE, NO_NAME = 0.3, 0.05, 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Album:
    """Photos with names, and whose each face is (None: of nobody with a name there)."""

    photos: list[PhotoWithNames]
    owners: list[list[str | None]]

    @property
    def named(self) -> int:
        """How many faces there are whose name the photo has."""
        return sum(owner is not None for owners in self.owners for owner in owners)


def composed(
    descriptors: NDArray[np.float32], labels: NDArray[np.str_], least: int, most: int, seed: int = 0
) -> Album:
    """Return photos of the people who have at least so many faces, of which so many are used."""
    chance = np.random.default_rng(seed)
    counts = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    people = chance.permutation(sorted(name for name, count in counts.items() if count >= least)).tolist()
    passers_by = np.flatnonzero([counts[label] == 1 for label in labels])
    photos, owners = [], []
    for start in range(0, len(people), CIRCLE):
        left = {
            name: chance.permutation(np.flatnonzero(labels == name))[:most].tolist()
            for name in people[start : start + CIRCLE]
        }
        while there := sorted(name for name, rows in left.items() if rows):
            together = chance.permutation(there)[: chance.integers(1, MOST_TOGETHER + 1)].tolist()
            rows, whose, names = list[int](), list[str | None](), list[str]()
            for name in together:
                row = left[name].pop()
                has_face, has_name = chance.random(2) >= (NO_FACE, NO_NAME)
                if has_name or not has_face:
                    names.append(name)
                if has_face:
                    rows.append(row)
                    whose.append(name if has_name else None)
            for _ in range(2):
                if chance.random() < PASSER_BY:
                    rows.append(int(chance.choice(passers_by)))
                    whose.append(None)
            order = chance.permutation(len(rows))
            photos.append(PhotoWithNames(tuple(names), descriptors[[rows[i] for i in order]]))
            owners.append([whose[i] for i in order])
    return Album(photos, owners)


def judged(album: Album, model: ScoreCalibration) -> list[str]:
    """Return the cells of a row: how many faces got a name, how well, and how many are asked about."""
    found = solve_names(album.photos, model)
    right = [album.owners[one.photo][one.face] == one.name for one in found]
    sure = [one.sure for one in found]
    named, right_sure = sum(sure), sum(a and b for a, b in zip(sure, right, strict=True))
    return [
        f"{len(album.photos):,}",
        f"{album.named:,}",
        f"{right_sure / max(1, named):.1%}",
        f"{right_sure / max(1, album.named):.1%}",
        f"{sum(right) - right_sure:,} of {len(found) - named:,}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("descriptors", type=Path)
    parser.add_argument("--half", choices=("train", "test"), default="test")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    descriptors, labels = read_descriptors(options.descriptors)
    labels, is_right = corrected(labels, np.load(options.descriptors)["paths"].tolist())
    half = half_of(labels, options.half) & is_right
    model = ScoreCalibration.of(load_calibration("sface", "match"))
    title = "Names without boxes"
    columns = ["photos of each name", "photos", "faces", "precision", "recall", "suggested, right"]
    rows = []
    print(" | ".join(columns))
    for least, most in PER_NAME:
        cells = judged(composed(descriptors[half], labels[half], least, most), model)
        rows.append([f"{least} to {most}" if most > least else str(least), *cells])
        print(" | ".join(rows[-1]))
    if options.json:
        made_by = f"Made by `python -m studies.names_without_boxes`, {options.half} half of LFW."
        table = {"title": title, "columns": columns, "rows": rows}
        result = {"title": title, "made_by": made_by, "remarks": [], "tables": [table]}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
