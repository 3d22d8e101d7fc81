"""What an experiment runs on: people and items from a descriptor file, LFW's press photos, or simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setnet.collect import CollectedSet, is_collected
from setnet.errors import InvalidInputError, one_of
from setnet.evaluate.data.labelled_people import LFW_LIKE, Halves, divided, read_people, virtual_halves
from setnet.evaluate.data.splits import read_split
from setnet.evaluate.methods.methods import Methods
from setnet.evaluate.report.record import fingerprinted
from setnet.evaluate.worlds.collected_world import CollectedWorld, collected_halves
from setnet.evaluate.worlds.real_worlds import composed_world, press_world
from setnet.evaluate.worlds.worlds import SimulatedWorld, World
from setnet.train import VirtualPeople

WORLDS = ("simulated", "composed", "press")
# Descriptor-per-element then reaches the paper's nDCG@10 of about 85 on the full world (docs/results.md).
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
            raise one_of("world", self.world, (*WORLDS, "a folder of `setnet collect`"))
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
