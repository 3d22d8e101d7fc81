"""How far a run is: its steps with counts and reasons, its names, its questions and answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from setnet.collect.annotation.agreement import Agreement, agreements
from setnet.collect.annotation.queue import AnnotationQueue, QueueState
from setnet.collect.mining.pairs import pairs_of
from setnet.collect.names.name_matcher import NameMatcher
from setnet.collect.names.portraits import known_names
from setnet.collect.run.manifest import Summary
from setnet.collect.run.run_folder import CollectRun
from setnet.collect.run.steps import STEPS, is_done


@dataclass(frozen=True)
class StepStatus:
    """A step: ``done``, ``to do again`` after something it depends on changed, ``cut short`` or ``to do``."""

    name: str
    state: str
    summary: Summary | None


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Attributes
    ----------
    steps
        In order.
    without_portrait
        Names of whom no portrait can be used: nobody is looked for by them.
    ambiguous
        What could mean several people of the list, how often such words were met in texts, and who they are.
    pairs
        How many pairs of people were found.
    queue, agreement
        Questions and answers; agreement of every two people who answered about the same faces.
    """

    steps: tuple[StepStatus, ...]
    without_portrait: tuple[str, ...]
    ambiguous: dict[str, tuple[int, tuple[str, ...]]]
    pairs: int
    queue: QueueState | None
    agreement: tuple[Agreement, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the status as values that JSON can hold."""
        from dataclasses import asdict

        return asdict(self)


def status_of(run: CollectRun) -> RunStatus:
    """Return how far a run is."""
    steps = tuple(_step(run, name) for name in (*STEPS, "result"))
    done = {step.name for step in steps if step.summary is not None}
    named: tuple[str, ...] = ()
    ambiguous: dict[str, tuple[int, tuple[str, ...]]] = {}
    if {"names", "portraits"} <= done:
        known = known_names(run)
        named = tuple(r["name"] for r in run.manifest("names").kept() if r["name"] not in known)
        met = Counter(
            form
            for row in (run.manifest("pairs").rows() if "pairs" in done else ())
            for form in row["ambiguous"]
        )
        forms = NameMatcher(known).ambiguous_forms()
        ambiguous = {form: (met[form], names) for form, names in forms.items()}
    queue = AnnotationQueue(run) if "labels" in done and "portraits" in done else None
    return RunStatus(
        steps,
        named,
        ambiguous,
        len(pairs_of(run)) if "pairs" in done else 0,
        None if queue is None else queue.state(),
        () if queue is None else tuple(agreements(queue.log.current())),
    )


def _step(run: CollectRun, name: str) -> StepStatus:
    manifest = run.manifest(name)
    if not manifest.exists:
        part = manifest.path.with_name(f"{manifest.path.name}.part")
        return StepStatus(name, "cut short" if part.is_file() else "to do", None)
    is_current = name not in STEPS or is_done(run, STEPS[name])
    return StepStatus(name, "done" if is_current else "to do again", manifest.summary())
