"""Worlds made of real descriptors: items composed at random, or real co-occurrence in LFW's press photos."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.data.labelled_people import LabelledPeople
from setnet.evaluate.data.splits import read_press_photos
from setnet.evaluate.worlds.world_plan import DISTRACTOR_IMAGES, IMAGES, make_plan
from setnet.evaluate.worlds.worlds import PLAN, World, draw_owners

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
LEAST_FACES = 4


class RealWorld(World):
    """Items whose elements are rows of real descriptors; each identity keeps some faces for queries."""

    def __init__(
        self,
        name: str,
        people: LabelledPeople,
        items: Ints,
        counts: Ints,
        owner: Ints,
        query_rows: Sequence[Ints],
        seed: int,
    ) -> None:
        queried = np.array([i for i, rows in enumerate(query_rows) if len(rows)])
        super().__init__(name, people.dim, counts, owner, len(query_rows), seed, queried)
        self.people, self.items, self.query_rows = people, items, query_rows

    def elements(self, first: int, rows: slice) -> Floats:
        """Return the descriptors of a chunk."""
        return self.people.descriptors[self.items[rows]]

    def faces_of(self, rng: np.random.Generator, each: int) -> Floats:
        """Return query faces; a person with few of them shows the same ones again."""
        faces = np.zeros((len(self.query_rows), each, self.dim), dtype=np.float32)
        faces[:, :, 0] = 1.0  # who has no query face is never queried, but vectors must have a length
        for i, rows in enumerate(self.query_rows):
            if len(rows):
                chosen = rng.choice(rows, each, replace=len(rows) < each)
                faces[i] = self.people.descriptors[chosen]
        return faces


def composed_world(people: LabelledPeople, name: str, items: int = 50_000, seed: int = 0) -> RealWorld:
    """Return items like Celebrity Together's, made of real descriptors at random.

    People of four faces or more are the celebrities: one half of their faces may be in items, the other half
    is for queries. Everyone else is unknown.
    """
    rng = np.random.default_rng((seed, PLAN))
    groups = people.groups(LEAST_FACES)
    if len(groups) < 3:
        raise InvalidInputError(
            f"{name}: {len(groups)} people have {LEAST_FACES} faces or more; a world needs three of them"
        )
    shuffled = [rng.permutation(rows) for rows in groups]
    inside, query_rows = ([rows[i::2] for rows in shuffled] for i in range(2))
    others = np.setdiff1d(np.arange(len(people.labels)), np.concatenate(groups))
    if len(others) < 20:
        raise InvalidInputError(
            f"{name}: {len(others)} faces of people with fewer than {LEAST_FACES}; a world needs unknown "
            "people too, 20 faces at least"
        )
    plan = make_plan(rng, min(1.0, items / (IMAGES + DISTRACTOR_IMAGES)))
    owner = draw_owners(plan, len(groups), rng)
    rows = rng.choice(others, len(owner))
    draws = rng.random(len(owner))
    for at in np.flatnonzero(owner >= 0).tolist():
        own = inside[owner[at]]
        rows[at] = own[int(draws[at] * len(own))]
    words = f"{len(plan.faces):,} items composed of real descriptors ({name}), {len(groups)} known people"
    return RealWorld(words, people, rows, plan.faces, owner, query_rows, seed)


def press_world(
    people: LabelledPeople, paths: Sequence[str], lists: Path, queried: frozenset[str], seed: int = 0
) -> RealWorld:
    """Return LFW's press photos with two or more named people as items; ``queried`` limits the queries.

    Parameters
    ----------
    paths
        (n,) the photo of each descriptor, ending in ``Name/Name_0001.jpg``.
    lists
        LFW's ``multi_person_photos.json``.
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
