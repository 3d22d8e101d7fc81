"""The steps of a run in order: each reads earlier manifests, writes its own, and can be resumed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from setnet.collect.annotation import AnnotationQueue, QueueState
from setnet.collect.captions import caption_rows
from setnet.collect.classifier import label_rows
from setnet.collect.duplicates import duplicate_rows
from setnet.collect.faces import distractor_rows, face_rows, known_names, portrait_rows
from setnet.collect.names import NameMatcher, name_rows
from setnet.collect.result import REFUSE, UNANSWERED, result_rows
from setnet.collect.run import CollectRun, Row, Summary, Work
from setnet.collect.search import name_pairs, pair_rows, photo_rows
from setnet.errors import InvalidInputError, choice_error

# Called with the name of a step and how many rows it has so far.
OnRow = Callable[[str, int], None]
_FACES = ("detector", "descriptor", "min_face")


@dataclass(frozen=True)
class Step:
    """A step: the settings and earlier steps that it depends on, its rows, and the field they differ in."""

    name: str
    settings: tuple[str, ...]
    after: tuple[str, ...]
    rows: Callable[[CollectRun, Work], Iterator[Row]]
    key: str = "photo"


_ALL = (
    Step("names", ("portraits", "names"), (), name_rows, "entry"),
    Step("portraits", _FACES, ("names",), portrait_rows, "portrait"),
    Step("captions", ("photos",), (), caption_rows),
    Step("pairs", (), ("names", "portraits", "captions"), pair_rows, "seed"),
    Step("photos", (), ("pairs",), photo_rows),
    Step("faces", _FACES, ("photos",), face_rows),
    Step("duplicates", ("exclude",), ("faces", "portraits"), duplicate_rows),
    Step("labels", ("rules",), ("duplicates", "portraits"), label_rows),
    Step("distractors", (*_FACES, "distractors"), (), distractor_rows),
)
STEPS: dict[str, Step] = {step.name: step for step in _ALL}


@dataclass(frozen=True)
class StepReport:
    """What a step did; ``was_done`` when there was nothing to do."""

    name: str
    summary: Summary
    was_done: bool = False


def is_done(run: CollectRun, step: Step) -> bool:
    """Return whether a step is finished, with the present settings and the present earlier steps."""
    manifest = run.manifest(step.name)
    if not manifest.exists or not all(run.manifest(name).exists for name in step.after):
        return False
    return manifest.provenance() == _provenance(run, step)


def run_step(
    run: CollectRun,
    name: str,
    *,
    again: bool = False,
    workers: int | None = None,
    on_row: OnRow | None = None,
) -> StepReport:
    """Do a step unless it is done; earlier steps have to be.

    Parameters
    ----------
    again
        Do it in any case, as after photos were added.
    workers
        Processes that open photos; one per core by default, and 0 works in this process.
    """
    if name not in STEPS:
        raise choice_error("step", name, STEPS)
    step = STEPS[name]
    with run.locked():
        # The list of names is read each time, at next to no cost: files may have been added or changed.
        if is_done(run, step) and not again and name != "names":
            return StepReport(name, run.manifest(name).summary(), was_done=True)
        for earlier in step.after:
            if not is_done(run, STEPS[earlier]):
                raise InvalidInputError(
                    f"step {name} needs step {earlier}: `setnet collect run {run.path}` runs all in order"
                )
        if again:
            run.manifest(name).remove()
        return write_manifest(run, step, lambda done: step.rows(run, Work(done, workers)), on_row)


def run_all(
    run: CollectRun,
    *,
    again: str | None = None,
    workers: int | None = None,
    on_row: OnRow | None = None,
) -> Iterator[StepReport]:
    """Do all steps that are left up to the labels, yielding a report of each; one of them ``again``."""
    if again is not None and again not in STEPS:
        raise choice_error("step", again, STEPS)
    for name in STEPS:
        yield run_step(run, name, again=name == again, workers=workers, on_row=on_row)


def write_result(
    run: CollectRun,
    out: str | Path,
    *,
    unanswered: str = REFUSE,
    copy: bool = False,
    on_row: OnRow | None = None,
) -> StepReport:
    """Write the data set into a new folder; all steps have to be done, and all questions answered.

    Parameters
    ----------
    unanswered
        ``refuse``, or what becomes of faces nobody answered about: ``unknown``, or ``drop`` their photos.
    copy
        Copy the photos in any case, instead of linking them where that is possible.
    """
    if unanswered not in UNANSWERED:
        raise choice_error("way with unanswered faces", unanswered, UNANSWERED)
    place = Path(out).expanduser().absolute()
    with run.locked():
        for name, step in STEPS.items():
            if not is_done(run, step):
                raise InvalidInputError(f"step {name} is not done: `setnet collect run {run.path}` does it")
        if unanswered == REFUSE:
            state = AnnotationQueue(run).state()
            if state.answered < state.questions:
                raise InvalidInputError(
                    f"{state.questions - state.answered:,} of {state.questions:,} faces wait for a person: "
                    f"`setnet collect annotate {run.path}`, or say what becomes of them with "
                    "--unanswered unknown or --unanswered drop"
                )
        run.manifest("result").remove()
        result = Step(
            "result",
            ("split", "seed"),
            ("labels", "distractors"),
            lambda run, _: result_rows(run, place, unanswered, copy),
        )
        return write_manifest(run, result, lambda done: result.rows(run, Work(done)), on_row)


def write_manifest(
    run: CollectRun, step: Step, rows: Callable[[set[str]], Iterable[Row]], on_row: OnRow | None = None
) -> StepReport:
    """Write the rows of a step; ``rows`` is called with the keys of those that are there already."""

    def report(count: int) -> None:
        if on_row is not None:
            on_row(step.name, count)

    return StepReport(
        step.name, run.manifest(step.name).write(_provenance(run, step), step.key, rows, report)
    )


def _provenance(run: CollectRun, step: Step) -> dict[str, Any]:
    settings = asdict(run.settings)
    chosen = {name: settings[name] for name in step.settings}
    made = {"settings": chosen, "after": {n: run.manifest(n).summary().checksum for n in step.after}}
    found: dict[str, Any] = json.loads(json.dumps(made))  # tuples become lists, as in the manifest
    return found


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
    queue
        Questions and answers.
    """

    steps: tuple[StepStatus, ...]
    without_portrait: tuple[str, ...] = ()
    ambiguous: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    pairs: int = 0
    queue: QueueState | None = None


def run_status(run: CollectRun) -> RunStatus:
    """Return how far a run is."""
    status = RunStatus(tuple(_step_status(run, name) for name in (*STEPS, "result")))
    done = {step.name for step in status.steps if step.summary is not None}
    if {"names", "portraits"} <= done:
        known = known_names(run)
        listed = (row["name"] for row in run.manifest("names").kept_rows())
        pairs = run.manifest("pairs").rows() if "pairs" in done else ()
        met = Counter(form for row in pairs for form in row["ambiguous"])
        forms = NameMatcher(known).ambiguous_forms()
        status = replace(
            status,
            without_portrait=tuple(name for name in listed if name not in known),
            ambiguous={form: (met[form], names) for form, names in forms.items()},
        )
    if "pairs" in done:
        status = replace(status, pairs=len(name_pairs(run)))
    if {"labels", "portraits"} <= done:
        status = replace(status, queue=AnnotationQueue(run).state())
    return status


def _step_status(run: CollectRun, name: str) -> StepStatus:
    manifest = run.manifest(name)
    if not manifest.exists:
        return StepStatus(name, "cut short" if manifest.is_begun else "to do", None)
    is_current = name not in STEPS or is_done(run, STEPS[name])
    return StepStatus(name, "done" if is_current else "to do again", manifest.summary())
