"""Section 5.2 on LFW's press photos with two or more named people: real co-occurrence.

    python -m studies.press --descriptors lfw.npz --lists multi_person_photos.json --json press.json

The list says which pictures of LFW were cut out of one photo.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from setnet.errors import InvalidInputError
from setnet.evaluate import retrieval
from setnet.evaluate.people import LabelledPeople, TrainTestSplit, read_people, read_press_photos, read_split
from setnet.evaluate.settings import option
from setnet.evaluate.worlds import RealWorld, World
from setnet.library.descriptor_files import read_arrays

TITLE = "Retrieval by set vectors (section 5.2): press"


@dataclass(frozen=True, kw_only=True)
class Settings(retrieval.Settings):
    """Section 5.2 on LFW's press photos."""

    lists: Path = field(metadata=option("LFW's multi_person_photos.json.", metavar="FILE", counts=False))

    def identity(self) -> dict[str, Any]:
        """Return what the numbers depend on."""
        return super().identity() | {"world": "press"}

    def make_world(self, split: TrainTestSplit) -> World:
        """Return the photos; `setnet describe` says which file each face is from."""
        if self.descriptors is None:
            raise InvalidInputError("press photos are made of LFW's faces: give --descriptors FILE")
        (paths,) = read_arrays(self.descriptors, ["paths"])
        return press_world(
            read_people(self.descriptors), paths.tolist(), self.lists, read_split().test, self.seed
        )


run, tables = retrieval.run, retrieval.tables


def press_world(
    people: LabelledPeople, paths: Sequence[str], lists: Path, queried: frozenset[str], seed: int = 0
) -> RealWorld:
    """Return LFW's press photos with two or more named people as items; ``queried`` limits the queries.

    `paths` are the photos of the descriptors, ending in ``Name/Name_0001.jpg``, and `lists` is LFW's
    ``multi_person_photos.json``.
    """
    row_of = {"/".join(Path(str(path)).parts[-2:]): row for row, path in enumerate(paths)}
    names = sorted({str(name) for name in people.labels.tolist()} - {""})
    number = {name: i for i, name in enumerate(names)}
    rows: list[int] = []
    counts: list[int] = []
    for faces in read_press_photos(lists).values():
        found = [row_of[face["image"]] for face in faces if face["image"] in row_of]
        if len(found) >= 2:
            rows += found
            counts.append(len(found))
    if not counts:
        raise InvalidInputError(
            f"none of the photos in {lists} is among the descriptors: expected LFW's paths"
        )
    items = np.array(rows)
    owner = np.array([number[str(people.labels[row])] for row in rows])
    used = set(rows)
    query_rows = [np.empty(0, np.int64)] * len(names)
    for group in people.groups():
        name = str(people.labels[group[0]])
        if name in queried:
            query_rows[number[name]] = np.array([row for row in group if row not in used], dtype=np.int64)
    words = f"{len(counts):,} press photos with two or more named LFW people"
    return RealWorld(words, people, items, np.array(counts), owner, query_rows, seed)


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.press")
