"""Where an experiment's people and items come from: a descriptor file, LFW's press photos, or simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setnet.errors import InvalidInputError, one_of
from setnet.evaluate.data.people import Halves, divided, read_people, virtual_halves
from setnet.evaluate.data.splits import read_split
from setnet.evaluate.experiments.fit import SHIPPED
from setnet.evaluate.report.record import fingerprinted
from setnet.evaluate.worlds.real_worlds import composed_world, press_world
from setnet.evaluate.worlds.worlds import SimulatedWorld, World
from setnet.learn import VirtualPeople

__all__ = ["PAPER_DIFFICULTY", "WORLDS", "Source"]

WORLDS = ("simulated", "composed", "press")
# Descriptor-per-element then reaches the paper's nDCG@10 of about 85 on the full world (docs/results.md).
PAPER_DIFFICULTY = 1.7


@dataclass(frozen=True)
class Source:
    """What was asked for on the command line."""

    descriptors: Path | None = None
    world: str | None = None
    scale: float = 1.0
    items: int = 50_000
    difficulty: float = PAPER_DIFFICULTY
    lists: Path | None = None
    people: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.world is not None and self.world not in WORLDS:
            raise one_of("world", self.world, WORLDS)
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

    def halves(self) -> Halves:
        """Return people to fit on and people to judge on."""
        if self.descriptors is None or self.kind == "simulated":
            return virtual_halves(self._model(), self.difficulty, self.seed)
        return divided(read_people(self.descriptors), self.descriptors.name, self.seed)

    def items_of(self, halves: Halves) -> World:
        """Return the world; known people are those of the half to judge on."""
        if self.kind == "simulated":
            return SimulatedWorld(self._model(), self.seed, self.scale, self.difficulty)
        assert self.descriptors is not None
        if self.kind == "press":
            return self._press()
        return composed_world(halves.test, self.descriptors.name, self.items, self.seed)

    def people_settings(self) -> dict[str, object]:
        """Return what the numbers of an experiment on people alone depend on."""
        if self.descriptors is None:
            return {"people": self._virtual(), "difficulty": self.difficulty, "seed": self.seed}
        return {"descriptors": fingerprinted(self.descriptors), "seed": self.seed}

    def settings(self) -> dict[str, object]:
        """Return what the numbers of an experiment on items depend on."""
        shown: dict[str, object] = {"world": self.kind, "seed": self.seed}
        if self.kind == "simulated":
            shown |= {"scale": self.scale, "difficulty": self.difficulty}
            if self.people is not None:
                shown["people"] = self._virtual()
        else:
            assert self.descriptors is not None
            shown["descriptors"] = fingerprinted(self.descriptors)
            if self.kind == "composed":
                shown["items"] = self.items
        return shown

    def _virtual(self) -> str:
        return "virtual" if self.people is None else fingerprinted(self.people)

    def _model(self) -> VirtualPeople:
        return VirtualPeople.load(self.people or SHIPPED)

    def _press(self) -> World:
        assert self.descriptors is not None
        if self.lists is None:
            raise InvalidInputError("--world press needs --lists: LFW's multi_person_photos.json")
        with np.load(self.descriptors, allow_pickle=False) as file:
            if "paths" not in file:
                raise InvalidInputError(
                    f"{self.descriptors} does not say which photo each face is from: make it with "
                    "`setnet describe`, which writes 'paths'"
                )
            paths = file["paths"].tolist()
        ask = read_split().test
        return press_world(read_people(self.descriptors), paths, self.lists, ask, self.seed)
