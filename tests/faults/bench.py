"""One scenario with its base, what it holds before and after its change, and what a fault may leave."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.harness import Outcome, Trials
from tests.faults.scenarios import SCENARIOS

__all__ = ["Bench"]


class Bench:
    """Makes copies of a scenario's base for trials, and compares what is left of them with the model."""

    def __init__(self, trials: Trials, name: str, folder: Path) -> None:
        self.trials, self.name, self.scenario = trials, name, SCENARIOS[name]
        self.base, self.root = folder / "base", folder / "root"
        self.base.mkdir()
        self.scenario.make(self.base)
        self.before = self._contents(lambda: None)
        self.calls = 0
        self.after = self._contents(self._undisturbed)

    def _undisturbed(self) -> None:
        outcome = self.trials.run(self.root, self.name)
        assert outcome.ended == "done", outcome
        self.calls = outcome.calls

    def _contents(self, change: Callable[[], None]) -> Any:
        with self.copy():
            change()
            return self.scenario.contents(self.root)

    @contextmanager
    def copy(self) -> Iterator[None]:
        """Copy the base to the root of a trial for as long as the block lasts."""
        shutil.copytree(self.base, self.root)
        try:
            yield
        finally:
            shutil.rmtree(self.root)

    def loss(self, root: Path, possible: Sequence[Any]) -> str | None:
        """Return what is wrong unless all files are sound and hold one of the possible contents."""
        try:
            contents = self.scenario.contents(root)
        except BaseException:
            return traceback.format_exc(limit=-4)
        return None if contents in possible else "other contents than expected"

    def possible(self, outcome: Outcome) -> list[Any]:
        """Return what may be there after a trial that ended so."""
        if outcome.acknowledged or outcome.ended.endswith("done"):
            return [self.after]
        if outcome.ended == "refused" and self.scenario.is_one_step:
            return [self.before]
        return [self.before, self.after]
