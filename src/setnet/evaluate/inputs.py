"""What several experiments take and how they are run: inputs, queries, progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.collect import CollectedSet
from setnet.collect.dataset import is_collected
from setnet.engine import Hit, SetIndex
from setnet.errors import InvalidInputError, choice_error
from setnet.evaluate.measures import Measured, ranking_measures
from setnet.evaluate.methods import Methods
from setnet.evaluate.people import LFW_LIKE, Halves, divided, read_people, read_split, virtual_halves
from setnet.evaluate.plain_scan import one_blas_thread
from setnet.evaluate.record import Progress, Record, Run, fingerprinted
from setnet.evaluate.worlds import (
    CollectedWorld,
    SimulatedWorld,
    World,
    collected_halves,
    composed_world,
    press_world,
)
from setnet.heads import Aggregator, Logistic, unit
from setnet.train import VirtualPeople

OnProgress = Callable[[Progress], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during an experiment; ``record`` holds the rows that were finished."""

    def __init__(self, record: Record) -> None:
        super().__init__(f"{record.experiment}: stopped after {len(record.rows)} rows")
        self.record = record


@contextmanager
def running(
    experiment: str,
    settings: Mapping[str, Any],
    path: Path | None = None,
    progress: OnProgress | None = None,
    total: int = 0,
) -> Iterator[Run]:
    """Yield the run to fill, and save it at the end; Ctrl-C becomes `Interrupted`."""
    run = Run(experiment, settings, path, progress, total)
    try:
        with one_blas_thread():  # same sums to the last bit on any number of cores, and no threads that spin
            yield run
    except KeyboardInterrupt as error:
        run.save()
        raise Interrupted(run.record()) from error
    run.save()


WORLDS = ("simulated", "composed", "press")
# Descriptor-per-element then reaches the paper's nDCG@10 of about 85
# on the full world (docs/research/claims.md).
PAPER_DIFFICULTY = 1.7


@dataclass(frozen=True)
class Inputs:
    """The people, items and heads of an experiment.

    Attributes
    ----------
    descriptors
        Descriptor file of labelled faces, as `setnet describe` writes it; without one, people are virtual.
    world
        ``"simulated"``, ``"composed"`` (of the descriptors) or ``"press"`` (LFW); by ``descriptors`` if None.
        Or the folder of a data set of `setnet collect`.
    scale
        Size of the simulated world; 1 is the paper's 549,000 items.
    items
        Size of a composed world.
    difficulty
        Spread of each virtual person's faces: 1 as on LFW, 1.7 as hard as the paper's.
    lists
        LFW's ``multi_person_photos.json``, for the press photos.
    people
        Parameters of the virtual people, as `fit` writes them; those like LFW's by default.
    heads
        Files of heads or trained networks to compare beside the shipped ones.
    seed
        Everything random follows from it.
    """

    descriptors: Path | None = None
    world: str | None = None
    scale: float = 1.0
    items: int = 50_000
    difficulty: float = PAPER_DIFFICULTY
    lists: Path | None = None
    people: Path | None = None
    heads: Sequence[str] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.collected is not None:
            if self.descriptors is not None or self.people is not None:
                raise InvalidInputError(
                    f"--world {self.world} has its own descriptors: leave --descriptors and --people out"
                )
            return
        if self.world is not None and self.world not in WORLDS:
            raise choice_error("world", self.world, (*WORLDS, "a folder of `setnet collect`"))
        if self.world == "simulated" and self.descriptors is not None:
            raise InvalidInputError(
                "--world simulated draws virtual people: leave --descriptors out, or make people like these "
                "by `setnet evaluate fit` and give them as --people"
            )
        if self.people is not None and self.descriptors is not None:
            raise InvalidInputError("--people are virtual, --descriptors real: give one of them")
        if self.kind != "simulated" and self.descriptors is None:
            raise InvalidInputError(
                f"--world {self.kind} is made of real descriptors: give --descriptors FILE"
            )

    @property
    def kind(self) -> str:
        """Which world: simulated unless descriptors are given."""
        return self.world or ("simulated" if self.descriptors is None else "composed")

    @property
    def collected(self) -> CollectedSet | None:
        """The data set that the world is, if it is one."""
        if self.world is None or not is_collected(Path(self.world)):
            return None
        return CollectedSet(self.world)

    def halves(self) -> Halves:
        """Return people to fit on and people to test on."""
        if (collected := self.collected) is not None:
            return collected_halves(collected)
        if self.descriptors is None:
            return virtual_halves(self.people, self.difficulty, self.seed)
        return divided(read_people(self.descriptors), self.descriptors.name, self.seed)

    def methods(self, halves: Halves, fitting_sets: int = 6000) -> Methods:
        """Return the methods, fitted on one half."""
        return Methods(halves.train, self.seed, self.heads or (), fitting_sets)

    def items_of(self, halves: Halves) -> World:
        """Return the world; known people are those of the half to test on."""
        if (collected := self.collected) is not None:
            return CollectedWorld(collected, self.seed)
        if self.descriptors is None:
            return SimulatedWorld(
                VirtualPeople.load(self.people or LFW_LIKE), self.seed, self.scale, self.difficulty
            )
        if self.kind == "press":
            return self._press(self.descriptors)
        return composed_world(halves.test, self.descriptors.name, self.items, self.seed)

    def people_settings(self) -> dict[str, object]:
        """Return what the numbers of an experiment on people alone depend on."""
        if self.descriptors is None:
            return {"people": self._virtual(), "difficulty": self.difficulty, "seed": self.seed}
        return {"descriptors": fingerprinted(self.descriptors), "seed": self.seed}

    def settings(self) -> dict[str, object]:
        """Return what the numbers of an experiment on items depend on."""
        if (collected := self.collected) is not None:
            rows = fingerprinted(collected.path / "photos.jsonl")
            return {"world": f"{collected.path.name}, {rows}", "seed": self.seed}
        shown: dict[str, object] = {"world": self.kind, "seed": self.seed}
        if self.descriptors is None:
            shown |= {"scale": self.scale, "difficulty": self.difficulty}
            if self.people is not None:
                shown["people"] = self._virtual()
        else:
            shown["descriptors"] = fingerprinted(self.descriptors)
            if self.kind == "composed":
                shown["items"] = self.items
        return shown

    def head_settings(self) -> dict[str, object]:
        """Return the fingerprints of the heads' files: a retrained head of the same name is another head."""
        files = [name for name in self.heads or () if name.endswith(".safetensors")]
        return {"heads": [fingerprinted(Path(name)) for name in files]} if files else {}

    def _virtual(self) -> str:
        return "virtual" if self.people is None else fingerprinted(self.people)

    def _press(self, descriptors: Path) -> World:
        if self.lists is None:
            raise InvalidInputError("--world press needs --lists: LFW's multi_person_photos.json")
        with np.load(descriptors, allow_pickle=False) as file:
            if "paths" not in file:
                raise InvalidInputError(
                    f"{descriptors} does not say which photo each face is from: make it with "
                    "`setnet describe`, which writes 'paths'"
                )
            paths = file["paths"].tolist()
        return press_world(read_people(descriptors), paths, self.lists, read_split().test, self.seed)


Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
ITEMS_AT_ONCE = 65_536
QUERIES_AT_ONCE = 64


def build_index(
    path: Path,
    world: World,
    aggregator: Aggregator | None,
    logistic: Logistic,
    set_logistic: Logistic | None = None,
    change: Callable[[Floats], Floats] | None = None,
) -> SetIndex:
    """Make an index of all items of a world; ``change`` may whiten the elements before they are stored."""
    index = SetIndex.create(
        path, world.dim, logistic=logistic, head=aggregator or "none", set_logistic=set_logistic
    )
    ids: list[str] = []
    elements: list[Floats] = []
    counts: list[Ints] = []

    def flush() -> None:
        if ids:
            index.add(ids, np.concatenate(elements), np.concatenate(counts))
        for batch in (ids, elements, counts):
            batch.clear()

    for chunk in world.chunks():
        ids += [str(chunk.first + i) for i in range(len(chunk.counts))]
        elements.append(change(chunk.elements) if change else chunk.elements)
        counts.append(chunk.counts)
        if len(ids) >= ITEMS_AT_ONCE:
            flush()
    flush()
    index.compact()
    return index


@dataclass(frozen=True, eq=False)
class QueryRunner:
    """A world's queries, and the measures of their answers against the ground truth."""

    world: World
    of_two: int = 500
    of_three: int = 500
    repeats: int = 3
    timed: int = 100

    @cached_property
    def queries(self) -> list[Ints]:
        """The people of each query."""
        return self.world.queries(self.of_two, self.of_three)

    @cached_property
    def _truth(self) -> list[dict[int, int]]:
        return [self.world.truth.relevance(query) for query in self.queries]

    def examples(self, repeat: int, each: int = 1) -> list[list[Floats]]:
        """Return, per query, one (each, dim) array of example faces per person."""
        faces = self.world.examples(repeat, each)
        return [[faces[int(p)] for p in query] for query in self.queries]

    def measured(self, query: int, found: Sequence[int]) -> dict[str, float]:
        """Return all measures of one ranking."""
        return ranking_measures(found, self._truth[query], len(self.queries[query]))

    def quality(self, search: Search, prepare: Prepare) -> Measured:
        """Return each measure's mean over queries; ``search`` takes a batch of queries."""
        return self.qualities(lambda batch: [{"": hits} for hits in search(batch)], prepare)[""]

    def qualities(
        self, search: Callable[[list[Any]], list[dict[str, list[Hit]]]], prepare: Prepare
    ) -> dict[str, Measured]:
        """Return the same for several rankings of each query, by their names."""
        values: dict[str, dict[str, list[list[float]]]] = {}
        for repeat in range(self.repeats):
            queries = prepare(self, repeat)
            found: dict[str, list[dict[str, float]]] = {}
            for start in range(0, len(queries), QUERIES_AT_ONCE):
                answers = search(queries[start : start + QUERIES_AT_ONCE])
                for number, rankings in enumerate(answers, start):
                    for name, hits in rankings.items():
                        measures = self.measured(number, [int(hit.id) for hit in hits])
                        found.setdefault(name, []).append(measures)
            for name, ones in found.items():
                for key in ones[0]:
                    values.setdefault(name, {}).setdefault(key, []).append([one[key] for one in ones])
        people = [query.tolist() for query in self.queries]
        return {name: Measured.of(found_by, people) for name, found_by in values.items()}

    def timing(self, search: Callable[[Any], object], prepare: Prepare) -> list[float]:
        """Return the processor seconds of single queries, evenly taken from all, after five to warm up.

        Searches run on one thread, so that on an idle machine these are the seconds one waits.
        """
        queries = prepare(self, 0)
        chosen = np.linspace(0, len(queries) - 1, min(self.timed, len(queries))).astype(int)
        for at in chosen[:5]:
            search(queries[at])
        seconds = []
        for at in chosen:
            started = time.process_time()
            search(queries[at])
            seconds.append(time.process_time() - started)
        return seconds


Prepare = Callable[[QueryRunner, int], list[Any]]
Search = Callable[[list[Any]], list[list[Hit]]]


def by_faces(runner: QueryRunner, repeat: int) -> list[Any]:
    """Prepare queries of one example face per person."""
    return [np.concatenate(people) for people in runner.examples(repeat)]


def by_whitened_faces(change: Callable[[Floats], Floats]) -> Prepare:
    """Prepare the same for an index of whitened elements."""
    return lambda runner, repeat: [change(unit(rows)) for rows in by_faces(runner, repeat)]
