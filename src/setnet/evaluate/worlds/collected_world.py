"""A data set of `setnet collect` as a world: its test photos and distractors are the items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.collect import CollectedSet
from setnet.errors import InvalidInputError
from setnet.evaluate.data.labelled_people import LEAST_PEOPLE, Halves, LabelledPeople
from setnet.evaluate.worlds.worlds import World
from setnet.heads import unit

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
DISTRACTOR = "distractor"


class CollectedWorld(World):
    """Test photos and distractors; query faces are the portraits, and queries those of the data set."""

    def __init__(self, collected: CollectedSet, seed: int = 0) -> None:
        names = collected.splits["test"]
        number = {name: i for i, name in enumerate(names)}
        counts: list[int] = []
        owner: list[int] = []
        places: list[int] = []
        for row in collected.rows("test", DISTRACTOR):
            counts.append(len(row["faces"]))
            places += range(row["first"], row["first"] + len(row["faces"]))
            owner += [number.get(face["name"], -1) for face in row["faces"]]
        if not counts:
            raise InvalidInputError(
                f"{collected.path} has no test photos: begin the run with another --split"
            )
        words = f"{len(counts):,} photos collected in {collected.path.name}, {len(names):,} known people"
        dim = int(collected.head["dim"])
        super().__init__(words, dim, np.array(counts), np.array(owner), len(names), seed)
        self._collected, self._places = collected, np.array(places)
        self._queries = [np.array([number[name] for name in group]) for group in collected.queries()]
        portraits, labels = collected.portraits
        vectors = unit(portraits)
        self._portraits = [vectors[labels == name] for name in names]

    def elements(self, first: int, rows: slice) -> Floats:
        """Return the descriptors of a chunk."""
        return unit(np.asarray(self._collected.descriptors[self._places[rows]]))

    def faces_of(self, rng: np.random.Generator, each: int) -> Floats:
        """Return portraits; a person with few of them shows the same ones again."""
        return np.stack([own[rng.choice(len(own), each, replace=len(own) < each)] for own in self._portraits])

    def queries(self, of_two: int, of_three: int) -> list[Ints]:
        """Return the queries of the data set, so many of two people and of three at most."""
        parts = ((2, of_two), (3, of_three))
        chosen = [[q for q in self._queries if len(q) == size][:wanted] for size, wanted in parts]
        if (of_two or of_three) and not any(chosen):
            raise InvalidInputError(
                f"{self._collected.path}: no two test people are together in a photo, so there is no query"
            )
        return [query for part in chosen for query in part]


def collected_halves(collected: CollectedSet) -> Halves:
    """Return the people of a data set to fit on, and those to test on."""
    parts = {}
    for split, word in (("train", "fit"), ("test", "test")):
        descriptors, labels = collected.labelled(split)
        parts[split] = LabelledPeople(unit(descriptors), labels)
        several = len(parts[split].groups(2))
        if several < LEAST_PEOPLE // 2:
            raise InvalidInputError(
                f"{collected.path}: {several} people to {word} on have two faces or more, "
                f"{LEAST_PEOPLE // 2} are needed; `setnet collect begin --split` changes the shares"
            )
    words = f"{collected.path.name}: fitted on its training people, tested on its test people"
    return Halves(parts["train"], parts["test"], words)
