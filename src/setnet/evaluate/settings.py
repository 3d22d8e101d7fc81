"""Settings of experiments: a dataclass each, which the command, its help, JSON and docs derive from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar

from setnet.collect import CollectedSet
from setnet.errors import InvalidInputError, choice_error
from setnet.evaluate.methods import Methods
from setnet.evaluate.people import (
    LFW_LIKE,
    TrainTestSplit,
    read_people,
    train_test_split,
    virtual_split,
)
from setnet.evaluate.record import Interrupted, OnProgress, Record, Run, fingerprint, one_blas_thread
from setnet.evaluate.worlds import (
    CollectedWorld,
    SimulatedWorld,
    World,
    collected_split,
    composed_world,
)
from setnet.train import VirtualPeople

# Descriptor-per-element then reaches the paper's nDCG@10 of about 85
# on the full world (docs/research/claims.md).
PAPER_DIFFICULTY = 1.7
FITTING_SETS = 6000


T = TypeVar("T")


def option(
    about: str,
    *names: str,
    metavar: str | None = None,
    minimum: int | None = None,
    choices: Sequence[str] = (),
    is_argument: bool = False,
    counts: bool = True,
) -> dict[str, Any]:
    """Return the metadata of a settings field: the help of its option, and the names if they differ.

    An argument is taken without a name. What `counts` is part of a record's identity: rows that were measured
    with another value may not stand in it.
    """
    given = {"names": names, "metavar": metavar, "minimum": minimum, "choices": choices}
    return given | {"help": about, "is_argument": is_argument, "counts": counts}


def setting(default: T, about: str, *names: str, **more: Any) -> T:
    """Return a field of a settings dataclass that has a default; the rest is as in `option`."""
    return field(default=default, metadata=option(about, *names, **more))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every experiment takes."""

    seed: int = setting(0, "Everything random follows from it.", minimum=0)

    def __post_init__(self) -> None:
        for each in fields(self):
            value, about = getattr(self, each.name), each.metadata
            if about["choices"] and value not in about["choices"]:
                raise choice_error(each.name, value, about["choices"])
            if about["minimum"] is not None and value is not None and value < about["minimum"]:
                raise InvalidInputError(f"{each.name} must be {about['minimum']} or more, got {value}")

    def identity(self) -> dict[str, Any]:
        """Return what the numbers depend on; files by their fingerprints."""
        return {
            each.name: _plain(getattr(self, each.name)) for each in fields(self) if each.metadata["counts"]
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return fingerprint(value)
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


@dataclass(frozen=True, kw_only=True)
class PeopleSettings(Settings):
    """What experiments on people take: whose faces, and which heads."""

    descriptors: Path | None = setting(
        None, "Descriptor file, as `setnet describe` writes it.", metavar="FILE.npz", counts=False
    )
    difficulty: float = setting(
        PAPER_DIFFICULTY,
        "Spread of each virtual person's faces: 1 as on LFW, 1.7 as hard as the paper's.",
        counts=False,
    )
    repeats: int = setting(10, "With other query faces each time.", minimum=1)

    def identity(self) -> dict[str, Any]:
        """Return what the numbers depend on."""
        if self.descriptors is not None:
            return {"descriptors": fingerprint(self.descriptors)} | super().identity()
        return {"people": "virtual", "difficulty": self.difficulty} | super().identity()

    def train_test_split(self) -> TrainTestSplit:
        """Return people to fit on and people to test on."""
        if self.descriptors is None:
            return virtual_split(self.difficulty, self.seed)
        return train_test_split(read_people(self.descriptors), self.descriptors.name, self.seed)


@dataclass(frozen=True, kw_only=True)
class MethodSettings(PeopleSettings):
    """What experiments that compare methods take."""

    methods: Sequence[str] = setting(
        (), "Only these; repeatable [default: all].", "--method", metavar="NAME", counts=False
    )
    heads: Sequence[str] = setting(
        (),
        "A head's .safetensors, or a run's network.safetensors, to add; repeatable.",
        "--head",
        metavar="FILE",
        counts=False,
    )

    def identity(self) -> dict[str, Any]:
        """Return what the numbers depend on: a retrained head of the same name is another head."""
        files = [fingerprint(Path(name)) for name in self.heads if name.endswith(".safetensors")]
        return super().identity() | ({"heads": files} if files else {})

    def fitted_methods(self, split: TrainTestSplit, max_sets: int | None = None) -> Methods:
        """Return the methods, fitted on one half by so many sets at most."""
        sets = min(FITTING_SETS, max_sets or FITTING_SETS)
        return Methods(split.train, self.seed, self.heads, sets, split.is_virtual)


@dataclass(frozen=True, kw_only=True)
class WorldSettings(MethodSettings):
    """What experiments on many items take: simulated, composed of the descriptors, or collected ones."""

    world: Path | None = setting(
        None, "A data set of `setnet collect`, instead of --descriptors.", metavar="DIR", counts=False
    )
    scale: float = setting(1.0, "Size of the simulated world; 1 is the paper's 549,000 items.", counts=False)
    items: int = setting(50_000, "Items of a composed world.", minimum=100, counts=False)
    queries: int = setting(1000, "Half of two people, half of three.", minimum=2)

    def __post_init__(self) -> None:
        if self.collected is not None and self.descriptors is not None:
            raise InvalidInputError(f"{self.world} has its own descriptors: leave --descriptors out")
        super().__post_init__()

    @property
    def collected(self) -> CollectedSet | None:
        """The data set that the world is, if it is one."""
        return None if self.world is None else CollectedSet(self.world)

    def identity(self) -> dict[str, Any]:
        """Return what the numbers depend on."""
        known = super().identity()
        if (collected := self.collected) is not None:
            rows = fingerprint(collected.path / "photos.jsonl")
            own = {key: value for key, value in known.items() if key not in ("people", "difficulty")}
            return {"world": f"{collected.path.name}, {rows}"} | own
        if self.descriptors is not None:
            return {"world": "composed", "items": self.items} | known
        del known["people"]
        return {"world": "simulated", "scale": self.scale} | known

    def train_test_split(self) -> TrainTestSplit:
        """Return people to fit on and people to test on."""
        collected = self.collected
        return super().train_test_split() if collected is None else collected_split(collected)

    def make_world(self, split: TrainTestSplit) -> World:
        """Return the items; known people are those of the half to test on."""
        if (collected := self.collected) is not None:
            return CollectedWorld(collected, self.seed)
        if self.descriptors is None:
            return SimulatedWorld(VirtualPeople.load(LFW_LIKE), self.seed, self.scale, self.difficulty)
        return composed_world(split.test, self.descriptors.name, self.items, self.seed)


S = TypeVar("S", bound=Settings, contravariant=True)


class Experiment(Protocol[S]):
    """Measures all rows of an experiment."""

    def __call__(self, settings: S, json: Path | None = None, progress: OnProgress | None = None) -> Record:
        """Return the record; the rows are kept in a JSON file, from which the same call continues."""


def experiment(name: str) -> Callable[[Callable[[Run, S], None]], Experiment[S]]:
    """Return the decorator of a function that measures all rows of an experiment of this name.

    `progress` is called with what is being done. Ctrl-C becomes `Interrupted`.
    """

    def decorate(measure: Callable[[Run, S], None]) -> Experiment[S]:
        @wraps(measure)
        def run(settings: S, json: Path | None = None, progress: OnProgress | None = None) -> Record:
            kept = Run(name, settings.identity(), json, progress)
            try:
                with one_blas_thread():  # same sums on any number of cores, and no threads that spin
                    measure(kept, settings)
            except KeyboardInterrupt as error:
                kept.save()
                raise Interrupted(kept.record()) from error
            kept.save()
            return kept.record()

        return run

    return decorate
