"""What the experiments on single faces share: they compare the descriptor with every head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from setnet.evaluate.experiments.inputs import Inputs
from setnet.evaluate.experiments.running import OnProgress, running
from setnet.evaluate.report.record import Record


def on_single_faces(
    experiment: str,
    fill: Callable[..., None],
    inputs: Inputs,
    methods: Sequence[str] | None,
    repeats: int,
    json: Path | None,
    progress: OnProgress | None,
) -> Record:
    """Let ``fill`` add the rows of the descriptor and of the heads among ``methods`` to a run."""
    halves = inputs.halves()
    fitted = inputs.methods(halves)
    names = fitted.chosen_heads(methods)
    settings = inputs.people_settings() | {"repeats": repeats} | inputs.head_settings()
    with running(experiment, settings, json, progress, len(names) + 1) as run:
        run.note(world=halves.name)
        fill(run, halves.test, fitted, names, repeats=repeats, seed=inputs.seed)
    return run.record()
