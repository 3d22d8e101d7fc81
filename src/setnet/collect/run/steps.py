"""The steps of a run in order: each reads earlier manifests, writes its own, and can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setnet.collect.annotation.labelling import label_rows
from setnet.collect.annotation.queue import AnnotationQueue
from setnet.collect.filtering.face_filter import distractor_rows, face_rows
from setnet.collect.filtering.near_duplicates import duplicate_rows
from setnet.collect.mining.pair_photos import photo_rows
from setnet.collect.mining.pairs import pair_rows
from setnet.collect.names.name_list import name_rows
from setnet.collect.names.portraits import portrait_rows
from setnet.collect.result.dataset_writing import ResultPlan, result_rows
from setnet.collect.run.manifest import ManifestWriter, Row, Summary
from setnet.collect.run.run_folder import CollectRun
from setnet.collect.sources.archive import CaptionArchive
from setnet.collect.sources.caption_rows import caption_rows
from setnet.collect.sources.photo_source import PhotoSource
from setnet.errors import InvalidInputError, one_of

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
        Step("captions", ("photos", "encoding"), ()),
        Step("pairs", ("answers_per_search",), ("names", "portraits", "captions"), "seed"),
        Step("photos", ("answers_per_pair", "names_needed"), ("pairs",)),
        Step("faces", (*_FACES, "least_faces"), ("photos",)),
        Step("duplicates", ("exclude",), ("faces", "portraits")),
        Step("labels", ("rules", "classifier", "strangers"), ("duplicates", "portraits")),
        Step("distractors", (*_FACES, "distractors", "least_faces"), ()),
    )
}
RESULT = Step("result", ("split", "queries", "distractor_photos", "seed"), ("labels", "distractors"))


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
    return dict(manifest.made_from()) == _made_from(run, step)


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
        raise one_of("step", name, STEPS)
    step = STEPS[name]
    with run.locked():
        # The list of names is read anew each time, at next to no cost: files may have been added or changed.
        if is_done(run, step) and not again and name != "names":
            return StepReport(name, run.manifest(name).summary(), True)
        for earlier in step.after:
            if not is_done(run, STEPS[earlier]):
                raise InvalidInputError(
                    f"step {name} needs step {earlier}: run it first, or all with `setnet collect run`"
                )
        if again:
            run.manifest(name).path.unlink(missing_ok=True)
        return _written(run, step, lambda done: _rows(run, name, done, workers, source), on_row)


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
    unanswered: str = "refuse",
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
    plan = ResultPlan(Path(out).expanduser().absolute(), unanswered, copy)
    with run.locked():
        for name, step in STEPS.items():
            if not is_done(run, step):
                raise InvalidInputError(f"step {name} is not done: `setnet collect run {run.path}` does it")
        if unanswered == "refuse":
            state = AnnotationQueue(run).state()
            if state.answered < state.questions:
                raise InvalidInputError(
                    f"{state.questions - state.answered:,} of {state.questions:,} faces wait for a person: "
                    f"`setnet collect annotate {run.path}`, or say what becomes of them with "
                    "--unanswered unknown or --unanswered drop"
                )
        run.manifest("result").path.unlink(missing_ok=True)
        run.path.joinpath("result.jsonl.part").unlink(missing_ok=True)
        return _written(run, RESULT, lambda _: result_rows(run, plan), on_row)


def _written(
    run: CollectRun, step: Step, rows: Callable[[set[str]], Iterable[Row]], on_row: OnRow | None
) -> StepReport:
    with ManifestWriter(run.manifest(step.name).path, _made_from(run, step), step.key) as writer:
        for row in rows(writer.done):
            if row[step.key] not in writer.done:
                writer.add(row)
                if on_row is not None:
                    on_row(step.name, writer.summary.rows)
        return StepReport(step.name, writer.finish(), False)


def _made_from(run: CollectRun, step: Step) -> dict[str, Any]:
    settings = asdict(run.settings)
    chosen = {name: settings[name] for name in step.settings}
    made = {"settings": chosen, "after": {n: run.manifest(n).summary().checksum for n in step.after}}
    found: dict[str, Any] = _as_json(made)
    return found


def _as_json(value: Any) -> Any:
    """Return a value as it comes back from JSON."""
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    return [_as_json(each) for each in value] if isinstance(value, tuple | list) else value


def _rows(
    run: CollectRun, name: str, done: set[str], workers: int | None, source: PhotoSource | None
) -> Iterator[Row]:
    plain: dict[str, Callable[[], Iterator[Row]]] = {
        "names": lambda: name_rows(run),
        "portraits": lambda: portrait_rows(run, done, workers),
        "captions": lambda: caption_rows(run, done, workers),
        "faces": lambda: face_rows(run, done, workers),
        "duplicates": lambda: duplicate_rows(run, workers),
        "labels": lambda: label_rows(run),
        "distractors": lambda: distractor_rows(run, done, workers),
    }
    if name in plain:
        yield from plain[name]()
        return
    with ExitStack() as stack:
        searched = source or stack.enter_context(CaptionArchive.of(run))
        yield from pair_rows(run, done, searched) if name == "pairs" else photo_rows(run, searched)
