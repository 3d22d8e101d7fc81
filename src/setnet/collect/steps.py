"""The steps of a run in order: each reads earlier manifests, writes its own, and can be resumed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setnet.collect.annotation import Agreement, AnnotationQueue, QueueState, agreements
from setnet.collect.captions import caption_rows
from setnet.collect.classifier import label_rows
from setnet.collect.faces import distractor_rows, face_rows, known_names, portrait_rows
from setnet.collect.names import NameMatcher, name_rows
from setnet.collect.result import REFUSE, result_rows
from setnet.collect.run import CollectRun, ManifestWriter, Row, Summary
from setnet.collect.search import CaptionArchive, PhotoSource, name_pairs, pair_rows, photo_rows
from setnet.errors import InvalidInputError, choice_error

# Called with the name of a step and how many rows it has so far.
OnRow = Callable[[str, int], None]
_FACES = ("detector", "descriptor", "min_face")


@dataclass(frozen=True)
class Step:
    """A step: which settings and which earlier steps it depends on, and the field that its rows differ in."""

    name: str
    settings: tuple[str, ...]
    after: tuple[str, ...]
    key: str = "photo"


STEPS: dict[str, Step] = {
    step.name: step
    for step in (
        Step("names", ("portraits", "names"), (), "entry"),
        Step("portraits", _FACES, ("names",), "portrait"),
        Step("captions", ("photos",), ()),
        Step("pairs", ("answers_per_search",), ("names", "portraits", "captions"), "seed"),
        Step("photos", ("answers_per_pair", "names_needed"), ("pairs",)),
        Step("faces", (*_FACES, "min_faces"), ("photos",)),
        Step("duplicates", ("exclude",), ("faces", "portraits")),
        Step("labels", ("rules", "classifier", "strangers"), ("duplicates", "portraits")),
        Step("distractors", (*_FACES, "distractors", "min_faces"), ()),
    )
}
_RESULT = Step("result", ("split", "queries", "distractor_photos", "seed"), ("labels", "distractors"))


@dataclass(frozen=True)
class StepReport:
    """What a step did; ``was_done`` when there was nothing to do."""

    name: str
    summary: Summary
    was_done: bool


def is_done(run: CollectRun, step: Step) -> bool:
    """Return whether a step is finished, with the present settings and the present earlier steps."""
    manifest = run.manifest(step.name)
    if not manifest.exists or not all(run.manifest(name).exists for name in step.after):
        return False
    return dict(manifest.provenance()) == _provenance(run, step)


def run_step(
    run: CollectRun,
    name: str,
    *,
    again: bool = False,
    workers: int | None = None,
    source: PhotoSource | None = None,
    on_row: OnRow | None = None,
) -> StepReport:
    """Do a step unless it is done; earlier steps have to be.

    Parameters
    ----------
    again
        Do it in any case, as after photos were added.
    workers
        Processes that open photos; one per core by default, and 0 works in this process.
    source
        Where photos are searched, instead of the captions of the run's folders.
    """
    if name not in STEPS:
        raise choice_error("step", name, STEPS)
    step = STEPS[name]
    with run.locked():
        # The list of names is read each time, at next to no cost: files may have been added or changed.
        if is_done(run, step) and not again and name != "names":
            return StepReport(name, run.manifest(name).summary(), True)
        for earlier in step.after:
            if not is_done(run, STEPS[earlier]):
                raise InvalidInputError(
                    f"step {name} needs step {earlier}: run it first, or all with `setnet collect run`"
                )
        if again:
            run.manifest(name).path.unlink(missing_ok=True)
        return write_manifest(run, step, lambda done: _rows(run, name, done, workers, source), on_row)


def run_all(
    run: CollectRun,
    *,
    workers: int | None = None,
    source: PhotoSource | None = None,
    on_row: OnRow | None = None,
) -> Iterator[StepReport]:
    """Do all steps that are left up to the labels, yielding a report of each."""
    for name in STEPS:
        yield run_step(run, name, workers=workers, source=source, on_row=on_row)


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
        run.manifest("result").path.unlink(missing_ok=True)
        run.path.joinpath("result.jsonl.part").unlink(missing_ok=True)
        return write_manifest(run, _RESULT, lambda _: result_rows(run, place, unanswered, copy), on_row)


def write_manifest(
    run: CollectRun, step: Step, rows: Callable[[set[str]], Iterable[Row]], on_row: OnRow | None = None
) -> StepReport:
    """Write the rows of a step; ``rows`` is called with the keys of those that are there already."""
    with ManifestWriter(run.manifest(step.name).path, _provenance(run, step), step.key) as writer:
        for row in rows(writer.done):
            if row[step.key] not in writer.done:
                writer.add(row)
                if on_row is not None:
                    on_row(step.name, writer.summary.rows)
        return StepReport(step.name, writer.finish(), False)


def _provenance(run: CollectRun, step: Step) -> dict[str, Any]:
    settings = asdict(run.settings)
    chosen = {name: settings[name] for name in step.settings}
    made = {"settings": chosen, "after": {n: run.manifest(n).summary().checksum for n in step.after}}
    found: dict[str, Any] = json.loads(json.dumps(made))  # tuples become lists, as in the manifest
    return found


def _rows(
    run: CollectRun, name: str, done: set[str], workers: int | None, source: PhotoSource | None
) -> Iterator[Row]:
    if name == "names":
        yield from name_rows(run)
    elif name == "portraits":
        yield from portrait_rows(run, done, workers)
    elif name == "captions":
        yield from caption_rows(run, done, workers)
    elif name == "faces":
        yield from face_rows(run, done, workers)
    elif name == "duplicates":
        from setnet.collect.duplicates import duplicate_rows  # needs OpenCV

        yield from duplicate_rows(run, workers)
    elif name == "labels":
        yield from label_rows(run)
    elif name == "distractors":
        yield from distractor_rows(run, done, workers)
    else:
        with ExitStack() as stack:
            searched = source or stack.enter_context(CaptionArchive.of(run))
            yield from pair_rows(run, done, searched) if name == "pairs" else photo_rows(run, searched)


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


def run_status(run: CollectRun) -> RunStatus:
    """Return how far a run is."""
    steps = tuple(_step_status(run, name) for name in (*STEPS, "result"))
    done = {step.name for step in steps if step.summary is not None}
    without_portrait: tuple[str, ...] = ()
    ambiguous: dict[str, tuple[int, tuple[str, ...]]] = {}
    if {"names", "portraits"} <= done:
        known = known_names(run)
        listed = (row["name"] for row in run.manifest("names").kept_rows())
        without_portrait = tuple(name for name in listed if name not in known)
        pairs = run.manifest("pairs").rows() if "pairs" in done else ()
        met = Counter(form for row in pairs for form in row["ambiguous"])
        forms = NameMatcher(known).ambiguous_forms()
        ambiguous = {form: (met[form], names) for form, names in forms.items()}
    queue = AnnotationQueue(run) if {"labels", "portraits"} <= done else None
    return RunStatus(
        steps,
        without_portrait,
        ambiguous,
        len(name_pairs(run)) if "pairs" in done else 0,
        None if queue is None else queue.state(),
        () if queue is None else tuple(agreements(queue.log.current())),
    )


def _step_status(run: CollectRun, name: str) -> StepStatus:
    manifest = run.manifest(name)
    if not manifest.exists:
        part = manifest.path.with_name(f"{manifest.path.name}.part")
        return StepStatus(name, "cut short" if part.is_file() else "to do", None)
    is_current = name not in STEPS or is_done(run, STEPS[name])
    return StepStatus(name, "done" if is_current else "to do again", manifest.summary())
