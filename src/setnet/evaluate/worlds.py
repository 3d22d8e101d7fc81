"""Worlds to search in: sets of people with ground truth, simulated, real, collected or stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.collect import CollectedSet
from setnet.collect.dataset import together_queries
from setnet.errors import InvalidInputError
from setnet.evaluate.people import MIN_PEOPLE, LabelledPeople, TrainTestSplit
from setnet.heads import unit
from setnet.train import VirtualPeople
from setnet.train.simulated import SimulatedIdentities

Ints = NDArray[np.int64]

# The paper's tables; the last key of each means "this many or more".
FACES_PER_IMAGE: Mapping[int, int] = {2: 113_000, 3: 43_000, 4: 19_000, 5: 9_000, 6: 10_000}
CELEBRITIES_PER_IMAGE: Mapping[int, int] = {1: 88_000, 2: 89_000, 3: 12_000, 4: 3_000, 5: 700, 6: 300}
IMAGES, FACES = 194_000, 546_000
DISTRACTOR_IMAGES, DISTRACTOR_FACES = 355_000, 1_000_000
IDENTITIES = 2622
MAX_FACES = 40


@dataclass(frozen=True, eq=False)
class Plan:
    """Per item: faces, and how many of them are celebrities'; and the number of celebrities there are."""

    faces: Ints
    celebrities: Ints
    identities: int


def make_plan(rng: np.random.Generator, scale: float = 1.0) -> Plan:
    """Return the plan of a world, ``scale`` times the paper's size, items in random order.

    The paper's table of celebrities adds up to 193k of 194k images, a matter of rounding: the remaining
    thousand hold unknown people only, so that every printed number is met exactly.
    """
    if not 0 < scale <= 1:
        raise InvalidInputError(f"scale {scale} must lie above 0 and not above 1, the paper's size")
    together = _shares(FACES_PER_IMAGE, IMAGES, scale)
    other_images = _shares(FACES_PER_IMAGE, DISTRACTOR_IMAGES, scale)
    faces = _face_counts(together, round(FACES * scale), rng)
    celebrities = _celebrity_counts(faces, scale, rng)
    others = _face_counts(other_images, round(DISTRACTOR_FACES * scale), rng)
    order = rng.permutation(len(faces) + len(others))
    return Plan(
        np.concatenate([faces, others])[order],
        np.concatenate([celebrities, np.zeros_like(others)])[order],
        max(20, round(IDENTITIES * scale)),
    )


def _shares(table: Mapping[int, int], total: int, scale: float) -> dict[int, int]:
    """Return the table scaled to ``total * scale`` in all, largest remainders rounded up."""
    whole = round(total * scale)
    exact = np.array(list(table.values())) * (whole / sum(table.values()))
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: whole - counts.sum()]] += 1
    return dict(zip(table, counts.tolist(), strict=True))


def _face_counts(table: Mapping[int, int], total: int, rng: np.random.Generator) -> Ints:
    """Return faces per item; the items of "more than 5" share what is missing to ``total``."""
    last = max(table)
    known = np.concatenate([np.full(table[size], size) for size in table if size < last])
    more = table[last]
    rest = total - int(known.sum()) - last * more
    if more == 0 or rest < 0:
        return np.concatenate([known, np.full(more, last)])
    # one more face with a fixed chance, again and again, brought to the exact total
    extra = np.minimum(rng.geometric(more / (more + rest), more) - 1, MAX_FACES - last)
    while (off := int(extra.sum()) - rest) != 0:
        open_ = np.flatnonzero(extra > 0) if off > 0 else np.flatnonzero(extra < MAX_FACES - last)
        chosen = rng.choice(open_, min(abs(off), len(open_)), replace=False)
        extra[chosen] -= int(np.sign(off))
    return np.concatenate([known, last + extra])


def _celebrity_counts(faces: Ints, scale: float, rng: np.random.Generator) -> Ints:
    """Return celebrities per item: the many first, each to an item with enough faces."""
    counts = np.zeros(len(faces), dtype=np.int64)
    free = rng.permutation(len(faces))
    for number in sorted(CELEBRITIES_PER_IMAGE, reverse=True):
        count = round(CELEBRITIES_PER_IMAGE[number] * scale)
        chosen = free[faces[free] >= number][:count]
        counts[chosen] = number
        free = free[counts[free] == 0]
    last = max(CELEBRITIES_PER_IMAGE)
    many = np.flatnonzero(counts == last)
    counts[many] = np.minimum(last - 1 + rng.geometric(0.6, len(many)), np.minimum(faces[many], 12))
    return counts


Floats = NDArray[np.float32]
CHUNK = 8192
FRIENDS = 24
# Share of the variance within a person that examples given together have in common. With independent noise
# three examples gained twice what they do on real degraded photos (docs/research/evaluating.md).
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
    `counts` are the faces per item, `owner` says whose each is (-1 for unknown people), and `queried` who of
    the known people may be queried: all if None.
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
        everybody = SimulatedIdentities(
            np.concatenate([celebrities.centres, distractors.centres]),
            np.concatenate([celebrities.spread, distractors.spread]),
        )
        who[unknown] = len(celebrities) + np.arange(len(distractors))
        return self._people.faces(rng, everybody, who)

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


class StoredWorld(World):
    """Everything as in the world it wraps; elements come from a file read in pieces."""

    def __init__(self, world: World, path: Path) -> None:
        super().__init__(
            world.name, world.dim, world.counts, world.owner, world.identities, world.seed, world.queried
        )
        self._world, self._path = world, path
        with open(path, "wb") as file:
            for chunk in world.chunks():
                file.write(np.ascontiguousarray(chunk.elements, np.float32).data)

    def elements(self, first: int, rows: slice) -> Floats:
        """Read the elements of a chunk."""
        shape = (rows.stop - rows.start, self.dim)
        offset = int(rows.start) * self.dim * 4
        return np.fromfile(self._path, np.float32, shape[0] * self.dim, offset=offset).reshape(shape)

    def faces_of(self, rng: np.random.Generator, each: int) -> Floats:
        """Return faces of every identity that are in no item."""
        return self._world.faces_of(rng, each)


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
        chosen = [[q for q in self._queries if len(q) == size][:count] for size, count in parts]
        if (of_two or of_three) and not any(chosen):
            raise InvalidInputError(
                f"{self._collected.path}: no two test people are together in a photo, so there is no query"
            )
        return [query for part in chosen for query in part]


def collected_split(collected: CollectedSet) -> TrainTestSplit:
    """Return the people of a data set to fit on, and those to test on."""
    parts = {}
    for split, word in (("train", "fit"), ("test", "test")):
        descriptors, labels = collected.labelled_faces(split)
        parts[split] = LabelledPeople(unit(descriptors), labels)
        several = len(parts[split].groups(2))
        if several < MIN_PEOPLE // 2:
            raise InvalidInputError(
                f"{collected.path}: {several} people to {word} on have two faces or more, "
                f"{MIN_PEOPLE // 2} are needed; `setnet collect begin --split` changes the shares"
            )
    words = f"{collected.path.name}: fitted on its training people, tested on its test people"
    return TrainTestSplit(parts["train"], parts["test"], words)


MIN_FACES = 4


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
    groups = people.groups(MIN_FACES)
    if len(groups) < 3:
        raise InvalidInputError(
            f"{name}: {len(groups)} people have {MIN_FACES} faces or more; a world needs three of them"
        )
    shuffled = [rng.permutation(rows) for rows in groups]
    inside, query_rows = ([rows[i::2] for rows in shuffled] for i in range(2))
    others = np.setdiff1d(np.arange(len(people.labels)), np.concatenate(groups))
    if len(others) < 20:
        raise InvalidInputError(
            f"{name}: {len(others)} faces of people with fewer than {MIN_FACES}; a world needs unknown "
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
