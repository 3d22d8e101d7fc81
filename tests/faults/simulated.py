"""The stores of the simulation, an index and a library: how they are opened, changed and looked at."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from setnet import SetIndex
from setnet.errors import UnknownAttributeError
from setnet.library import Library
from tests.faults.random_walk import Change, IndexStore, State
from tests.faults.scenarios import DIM, elements
from tests.support import library_model
from tests.support.invented_photos import finish_interrupted
from tests.support.library_model import Model, NotPossibleError

__all__ = ["SIMULATED", "Simulated"]


class Simulated(Protocol):
    """A store, and the model of what it holds."""

    writers_take_turns: bool  # two objects may write in turn; else the lock is held until it is closed

    def make(self, root: Path) -> Any:
        """Make the store; return the state of its model."""

    def open(self, root: Path) -> Any:
        """Open it for writing."""

    def open_reader(self, root: Path) -> Any:
        """Open it for reading."""

    def open_backup(self, folder: Path) -> Any:
        """Open a backup for reading."""

    def propose(self, state: Any, chance: random.Random) -> Any:
        """Return a random change."""

    def apply(self, state: Any, change: Any) -> Any | None:
        """Return the state after a change; None when it has to be refused."""

    def is_one_step(self, change: Any) -> bool:
        """Return whether an error other than `OutcomeUnknownError` says that a change is not stored."""

    def between(self, state: Any, change: Any) -> Sequence[Any]:
        """Return what a change that was cut short may leave, besides the states before and after it."""

    def perform(self, opened: Any, change: Any, after: Any) -> None:
        """Make a change."""

    def finish(self, opened: Any) -> None:
        """Finish what was cut short."""

    def audit(self, root: Path, change: Any, after: Any) -> None:
        """Look for traces of what a change has deleted for good."""

    def expected(self, state: Any) -> Any:
        """Return what `held` has to be."""

    def held(self, opened: Any) -> Any:
        """Return all that is stored."""

    def search(self, opened: Any, state: Any, chance: random.Random) -> None:
        """Compare the answer to a random query with the model."""

    def check(self, opened: Any) -> list[str]:
        """Return the problems that a check finds."""

    def back_up(self, opened: Any, to: Path) -> None:
        """Back up."""

    def repair(self, root: Path) -> list[str]:
        """Repair; return what was lost."""


class SimulatedIndex:
    """An index; items by id."""

    writers_take_turns = False

    def __init__(self) -> None:
        walk = IndexStore()
        self.make, self.open, self.held = walk.make, walk.open, walk.held
        self.propose, self.apply, self.perform = walk.propose, walk.apply, walk.perform
        self.expected = walk.expected

    def open_reader(self, root: Path) -> SetIndex:
        return SetIndex.open(root / "index", read_only=True)

    def open_backup(self, folder: Path) -> SetIndex:
        return SetIndex.open(folder, read_only=True)

    def is_one_step(self, change: Change) -> bool:
        return True

    def between(self, state: State, change: Change) -> Sequence[State]:
        return ()

    def finish(self, opened: SetIndex) -> None:
        pass

    def audit(self, root: Path, change: Change, after: State) -> None:
        pass

    def search(self, opened: SetIndex, state: State, chance: random.Random) -> None:
        items = state["items"]
        assert len(opened) == len(items)
        number = chance.choice([None, 1, 2])
        where = None if number is None else {"n": number}
        wanted = [i for i in items if items[i][1] and (number is None or items[i][2] == number)]
        query = elements(items[chance.choice(wanted)][0], 1) if wanted else np.eye(DIM, dtype=np.float32)[:1]
        try:
            hits = opened.search(query, k=len(items) + 1, where=where)
        except UnknownAttributeError:
            assert all(item[2] is None for item in items.values()), "an attribute is not known"
            return
        assert sorted(hit.id for hit in hits) == sorted(wanted), "other items found than stored"

    def check(self, opened: SetIndex) -> list[str]:
        return list(opened.check().problems)

    def back_up(self, opened: SetIndex, to: Path) -> None:
        opened.backup(to)

    def repair(self, root: Path) -> list[str]:
        return list(SetIndex.repair(root / "index").lost)


class SimulatedLibrary:
    """A library of invented photos and saved people."""

    writers_take_turns = True

    def make(self, root: Path) -> Model:
        Library.create(root / "library").close()
        return Model()

    def open(self, root: Path) -> Library:
        return Library.open(root / "library")

    def open_reader(self, root: Path) -> Library:
        return Library.open(root / "library")

    def open_backup(self, folder: Path) -> Library:
        return Library.open(folder)

    def propose(self, state: Model, chance: random.Random) -> library_model.Change:
        return library_model.propose(state, chance)

    def apply(self, state: Model, change: library_model.Change) -> Model | None:
        try:
            return library_model.apply(state, change)
        except NotPossibleError:
            return None

    def is_one_step(self, change: library_model.Change) -> bool:
        return change[0] not in ("store", "forget", "erase")

    def between(self, state: Model, change: library_model.Change) -> Sequence[Model]:
        if change[0] != "store":
            return ()
        unread = library_model.apply(state, ("store", ()))
        unread.photos -= set(change[1])  # the next run reads them again
        return [unread]

    def perform(self, opened: Library, change: library_model.Change, after: Model) -> None:
        library_model.perform(opened, change)

    def finish(self, opened: Library) -> None:
        finish_interrupted(opened)

    def audit(self, root: Path, change: library_model.Change, after: Model) -> None:
        if change[0] == "forget" and change[1] not in after.photos:
            traces = library_model.traces(root, change[1])
            assert not traces, f"{change[1]} is forgotten and still in {traces}"

    def expected(self, state: Model) -> Any:
        return state.holds()

    def held(self, opened: Library) -> Any:
        return library_model.observe(opened)

    def search(self, opened: Library, state: Model, chance: random.Random) -> None:
        library_model.compare_search(opened, state, chance)

    def check(self, opened: Library) -> list[str]:
        return opened.check()

    def back_up(self, opened: Library, to: Path) -> None:
        opened.backup(to)

    def repair(self, root: Path) -> list[str]:
        return list(Library.repair(root / "library").lost)


SIMULATED: dict[str, type[Simulated]] = {"index": SimulatedIndex, "library": SimulatedLibrary}
