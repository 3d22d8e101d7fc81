"""Worlds: items that are sets of faces, with the ground truth of who is where, and queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.worlds.world_plan import make_plan
from setnet.learn import Crowd, VirtualPeople

__all__ = ["Chunk", "Circles", "SimulatedWorld", "Truth", "World", "make_queries"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
CHUNK = 8192
FRIENDS = 24
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


class World(Protocol):
    """What every experiment on a large set of items needs; all of it the same for the same seed."""

    @property
    def name(self) -> str:
        """What it is, in words for a table's caption."""
        ...

    @property
    def dim(self) -> int:
        """Dimension of the descriptors."""
        ...

    @property
    def size(self) -> int:
        """Number of items."""
        ...

    @property
    def faces(self) -> int:
        """Number of faces in all items."""
        ...

    @property
    def truth(self) -> Truth:
        """Who is where."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """Yield all items in order, in bounded memory."""
        ...

    def queries(self, of_two: int, of_three: int) -> list[Ints]:
        """Return groups of two and of three identities who appear together in some item."""
        ...

    def examples(self, repeat: int, each: int) -> Floats:
        """Return (identities, each, dim): faces of every identity that are in no item."""
        ...

    def gallery(self, each: int = 10) -> Floats:
        """Return (identities, each, dim): further faces, for tagging."""
        ...


@dataclass(frozen=True, eq=False)
class SimulatedWorld:
    """The simulated Celebrity Together: the paper's counts, virtual people, streamed.

    Celebrities are not equally famous and appear with their friends: the first of an item is drawn by fame,
    the others from that one's circle of 24.
    """

    model: VirtualPeople
    seed: int = 0
    scale: float = 1.0
    difficulty: float = 1.0

    @property
    def name(self) -> str:
        """What it is."""
        return f"simulated Celebrity Together, {self.size:,} items, difficulty {self.difficulty:g}"

    @property
    def dim(self) -> int:
        """Dimension of the descriptors."""
        return self.model.dim

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.counts)

    @property
    def faces(self) -> int:
        """Number of faces in all items."""
        return int(self.counts.sum())

    @property
    def counts(self) -> Ints:
        """Faces per item."""
        return self._layout[0]

    @property
    def owner(self) -> Ints:
        """Whose each face is; -1 for unknown people."""
        return self._layout[1]

    @property
    def identities(self) -> int:
        """Number of known people."""
        return self._layout[2]

    @cached_property
    def truth(self) -> Truth:
        """Who is where."""
        return Truth.of(self.owner, np.repeat(np.arange(self.size), self.counts), self.identities)

    def chunks(self) -> Iterator[Chunk]:
        """Yield all items in order, `CHUNK` at a time; each chunk has its own stream of random numbers."""
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        for first in range(0, self.size, CHUNK):
            counts = self.counts[first : first + CHUNK]
            owner = self.owner[starts[first] : starts[first + len(counts)]]
            yield Chunk(first, self._draw(owner, self._rng(FACE, first)), counts)

    def queries(self, of_two: int = 500, of_three: int = 500) -> list[Ints]:
        """Return groups of identities who appear together in some item."""
        return make_queries(self.owner, self.counts, of_two, of_three, self._rng(QUERY))

    def examples(self, repeat: int, each: int) -> Floats:
        """Return fresh faces of every identity, other ones in each repeat."""
        return self._fresh(self._rng(EXAMPLE, repeat), each)

    def gallery(self, each: int = 10) -> Floats:
        """Return further fresh faces of every identity."""
        return self._fresh(self._rng(GALLERY), each)

    def _rng(self, stream: int, part: int = 0) -> np.random.Generator:
        return np.random.default_rng((self.seed, stream, part))

    @cached_property
    def _people(self) -> VirtualPeople:
        return self.model.harder(self.difficulty)

    @cached_property
    def _celebrities(self) -> Crowd:
        return self._people.people(self._rng(PLAN, 1), self.identities)

    @cached_property
    def _layout(self) -> tuple[Ints, Ints, int]:
        rng = self._rng(PLAN)
        plan = make_plan(rng, self.scale)
        starts = np.cumsum(plan.faces) - plan.faces
        owner = np.full(int(plan.faces.sum()), -1, dtype=np.int64)
        circles = Circles(plan.identities, rng)
        for number in range(1, int(plan.celebrities.max()) + 1):
            items = np.flatnonzero(plan.celebrities == number)
            owner[starts[items][:, None] + np.arange(number)] = circles.groups(len(items), number, rng)
        return plan.faces, owner, plan.identities

    def _draw(self, owner: Ints, rng: np.random.Generator) -> Floats:
        celebrities, unknown = self._celebrities, owner < 0
        distractors = self._people.people(rng, int(unknown.sum()))
        crowd = Crowd(
            np.concatenate([celebrities.centres, distractors.centres]),
            np.concatenate([celebrities.spread, distractors.spread]),
        )
        who = owner.copy()
        who[unknown] = len(celebrities) + np.arange(len(distractors))
        return self._people.faces(rng, crowd, who)

    def _fresh(self, rng: np.random.Generator, each: int) -> Floats:
        who = np.repeat(np.arange(self.identities), each)
        return self._people.faces(rng, self._celebrities, who).reshape(self.identities, each, self.dim)


class Circles:
    """Fame and friends: who appears with whom."""

    def __init__(self, identities: int, rng: np.random.Generator) -> None:
        fame = 1.0 / np.sqrt(np.arange(1, identities + 1) + identities / 10)
        self.fame = rng.permutation(fame / fame.sum())
        size = min(FRIENDS, identities - 1)
        steps = np.stack([rng.choice(identities - 1, size, replace=False) for _ in range(identities)])
        self.friends = (np.arange(identities)[:, None] + 1 + steps) % identities
        self.closeness = np.log(1.0 / np.arange(1, size + 1))

    def groups(self, count: int, number: int, rng: np.random.Generator) -> Ints:
        """Return (count, number) different people who are friends of the first."""
        first = rng.choice(len(self.fame), count, p=self.fame)
        if number == 1:
            return first[:, None]
        # the largest of log weight + Gumbel noise are a weighted draw without repetition
        keys = self.closeness + rng.gumbel(size=(count, len(self.closeness)))
        chosen = np.argpartition(-keys, number - 2, axis=1)[:, : number - 1]
        return np.column_stack([first, np.take_along_axis(self.friends[first], chosen, axis=1)])


def make_queries(
    owner: Ints,
    counts: Ints,
    of_two: int,
    of_three: int,
    rng: np.random.Generator,
    allowed: Ints | None = None,
) -> list[Ints]:
    """Return random groups of two and of three who are together in some item, no group twice.

    ``allowed`` limits the people queried to those with example faces.
    """
    starts = np.cumsum(counts) - counts
    known = owner >= 0 if allowed is None else np.isin(owner, allowed)
    together = np.add.reduceat(known, starts) if len(starts) else np.empty(0, np.int64)
    queries: list[Ints] = []
    for size, wanted in ((2, of_two), (3, of_three)):
        seen: set[tuple[int, ...]] = set()
        for item in rng.permutation(np.flatnonzero(together >= size)):
            if len(seen) == wanted:
                break
            rows = np.arange(starts[item], starts[item] + counts[item])
            people = np.unique(owner[rows[known[rows]]])
            if len(people) >= size:
                seen.add(tuple(sorted(rng.choice(people, size, replace=False).tolist())))
        queries += [np.array(group) for group in sorted(seen)]
    if (of_two or of_three) and not queries:
        raise InvalidInputError(
            "no two known people appear together in any item: nothing to query; a world needs items with two "
            "labelled people"
        )
    return queries
