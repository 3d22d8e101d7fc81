"""Worlds: items that are sets of faces, with the ground truth of who is where, and queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from setnet.collect import together_queries
from setnet.errors import InvalidInputError
from setnet.evaluate.worlds.world_plan import Plan, make_plan
from setnet.train import SimulatedIdentities, VirtualPeople

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
CHUNK = 8192
FRIENDS = 24
# Share of the variance within a person that examples given together have in common. With independent noise
# three examples gained twice what they do on real degraded photos (docs/evaluate.md).
TOGETHER = 0.7
# Independent streams of random numbers of one seed.
PLAN, FACE, QUERY, EXAMPLE, GALLERY = range(5)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive items: the number of the first, all their elements, and how many each has."""

    first: int
    elements: Floats
    counts: Ints


@dataclass(frozen=True, eq=False)
class Truth:
    """Who is in which item: for each identity its items, ascending."""

    start: Ints
    items: Ints

    @classmethod
    def of(cls, owner: Ints, item: Ints, identities: int) -> Truth:
        """Build from whose each face is (-1: unknown) and which item it is in."""
        known = np.flatnonzero(owner >= 0)
        pairs = np.unique(np.stack([owner[known], item[known]], axis=1), axis=0)
        return cls(np.searchsorted(pairs[:, 0], np.arange(identities + 1)), pairs[:, 1])

    def items_of(self, identity: int) -> Ints:
        """Return the items an identity is in."""
        return self.items[self.start[identity] : self.start[identity + 1]]

    def relevance(self, people: Ints) -> dict[int, int]:
        """Return, for each item with any of the people, how many of them it holds."""
        found, counts = np.unique(np.concatenate([self.items_of(int(p)) for p in people]), return_counts=True)
        return dict(zip(found.tolist(), counts.tolist(), strict=True))


class World:
    """Items that are sets of faces, the ground truth, and queries; all of it the same for the same seed.

    Subclasses supply the faces: `elements` of the items, and `faces_of` every identity that are in no item.

    Parameters
    ----------
    name
        What it is, in words for a table's caption.
    dim
        Dimension of the descriptors.
    counts
        Faces per item.
    owner
        Whose each face is; -1 for unknown people.
    identities
        Number of known people.
    queried
        The people that may be queried; all known ones if None.
    """

    def __init__(
        self,
        name: str,
        dim: int,
        counts: Ints,
        owner: Ints,
        identities: int,
        seed: int,
        queried: Ints | None = None,
    ) -> None:
        self.name, self.dim, self.counts, self.owner = name, dim, counts, owner
        self.identities, self.seed, self.queried = identities, seed, queried
        self.size, self.faces = len(counts), int(counts.sum())

    def elements(self, first: int, rows: slice) -> Floats:
        """Return the elements in ``rows`` of a chunk of items; ``first`` is the number of its first item."""
        raise NotImplementedError

    def faces_of(self, rng: np.random.Generator, each: int) -> Floats:
        """Return (identities, each, dim): faces of every identity that are in no item."""
        raise NotImplementedError

    @cached_property
    def truth(self) -> Truth:
        """Who is where."""
        return Truth.of(self.owner, np.repeat(np.arange(self.size), self.counts), self.identities)

    def chunks(self) -> Iterator[Chunk]:
        """Yield all items in order, in bounded memory."""
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        for first in range(0, self.size, CHUNK):
            counts = self.counts[first : first + CHUNK]
            rows = slice(starts[first], starts[first + len(counts)])
            yield Chunk(first, self.elements(first, rows), counts)

    def queries(self, of_two: int, of_three: int) -> list[Ints]:
        """Return random groups of two and of three identities who are together in some item, none twice."""
        known = self.owner >= 0 if self.queried is None else np.isin(self.owner, self.queried)
        queries = together_queries(self.counts, self.owner, known, of_two, of_three, self._rng(QUERY))
        if (of_two or of_three) and not queries:
            raise InvalidInputError(
                "no two known people appear together in any item: nothing to query; a world needs items "
                "with two labelled people"
            )
        return queries

    def examples(self, repeat: int, each: int) -> Floats:
        """Return (identities, each, dim): query faces, other ones in each repeat."""
        return self.faces_of(self._rng(EXAMPLE, repeat), each)

    def gallery(self, each: int = 10) -> Floats:
        """Return (identities, each, dim): further faces, for tagging."""
        return self.faces_of(self._rng(GALLERY), each)

    def _rng(self, stream: int, part: int = 0) -> np.random.Generator:
        return np.random.default_rng((self.seed, stream, part))


class SimulatedWorld(World):
    """The simulated Celebrity Together: the paper's counts, virtual people, streamed."""

    def __init__(
        self, model: VirtualPeople, seed: int = 0, scale: float = 1.0, difficulty: float = 1.0
    ) -> None:
        rng = np.random.default_rng((seed, PLAN, 0))
        plan = make_plan(rng, scale)
        owner = draw_owners(plan, plan.identities, rng)
        name = f"simulated Celebrity Together, {len(plan.faces):,} items, difficulty {difficulty:g}"
        super().__init__(name, model.dim, plan.faces, owner, plan.identities, seed)
        self._people = model.harder(difficulty)
        self._celebrities = self._people.people(self._rng(PLAN, 1), self.identities)

    def elements(self, first: int, rows: slice) -> Floats:
        """Draw the faces of a chunk; each chunk has its own stream of random numbers."""
        rng, who = self._rng(FACE, first), self.owner[rows].copy()
        celebrities, unknown = self._celebrities, who < 0
        distractors = self._people.people(rng, int(unknown.sum()))
        crowd = SimulatedIdentities(
            np.concatenate([celebrities.centres, distractors.centres]),
            np.concatenate([celebrities.spread, distractors.spread]),
        )
        who[unknown] = len(celebrities) + np.arange(len(distractors))
        return self._people.faces(rng, crowd, who)

    def faces_of(self, rng: np.random.Generator, each: int) -> Floats:
        """Return fresh faces of every identity."""
        who = np.repeat(np.arange(self.identities), each)
        faces = self._people.faces(rng, self._celebrities, who, TOGETHER)
        return faces.reshape(self.identities, each, self.dim)


def draw_owners(plan: Plan, identities: int, rng: np.random.Generator) -> Ints:
    """Return whose each face of a plan is, -1 for unknown people.

    Celebrities are not equally famous and appear with their friends: the first of an item is drawn by fame,
    the others from that one's circle of 24.
    """
    fame = 1.0 / np.sqrt(np.arange(1, identities + 1) + identities / 10)
    fame = rng.permutation(fame / fame.sum())
    size = min(FRIENDS, identities - 1)
    steps = np.stack([rng.choice(identities - 1, size, replace=False) for _ in range(identities)])
    friends = (np.arange(identities)[:, None] + 1 + steps) % identities
    closeness = np.log(1.0 / np.arange(1, size + 1))
    celebrities = np.minimum(plan.celebrities, identities)
    starts = np.cumsum(plan.faces) - plan.faces
    owner = np.full(int(plan.faces.sum()), -1, dtype=np.int64)
    for number in range(1, int(celebrities.max()) + 1):
        items = np.flatnonzero(celebrities == number)
        first = rng.choice(identities, len(items), p=fame)
        owner[starts[items]] = first
        if number > 1:
            # the largest of log weight + Gumbel noise are a weighted draw without repetition
            keys = closeness + rng.gumbel(size=(len(items), size))
            chosen = np.argpartition(-keys, number - 2, axis=1)[:, : number - 1]
            others = np.take_along_axis(friends[first], chosen, axis=1)
            owner[starts[items][:, None] + np.arange(1, number)] = others
    return owner
