"""`setnet collect`: a labelled data set out of an archive of photos with captions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import (
    DescriptorOption,
    DetectorOption,
    MinFaceOption,
    OpenOption,
    PortOption,
    WorkersOption,
    argument,
    make_app,
    option,
)
from setnet.cli.output import say
from setnet.errors import InvalidInputError
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.collect import RunStatus, StepReport, Summary

RunArgument = Annotated[Path, argument("RUN", "The run's folder.")]

app = make_app()


@app.callback()
def collect() -> None:
    """Make a labelled data set of people together out of an archive of photos with captions.

    The order is begin, run, annotate, result. Every step of run writes RUN/STEP.jsonl, which says why each
    photo was kept or dropped, and continues where it was cut short.
    """


def _reasons(summary: Summary) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in summary.reasons.most_common())


def _describe_step(report: StepReport) -> str:
    """Return what a step did."""
    summary = report.summary
    state = " (was done)" if report.was_done else ""
    dropped = f"; {_reasons(summary)}" if summary.reasons else ""
    return f"{report.name}{state}: {summary.kept:,} of {summary.rows:,} kept{dropped}"


@command(app, library=False, json=False)
def begin(
    call: Call,
    run: RunArgument,
    portraits: Annotated[
        Path | None, option("A folder per person with portraits: DIR/Name/*.jpg.", metavar="DIR")
    ] = None,
    photos: Annotated[list[Path] | None, option("Folder of the archive; repeatable.", metavar="DIR")] = None,
    names: Annotated[
        Path | None, option("List of names, with aliases [default: all of --portraits].", metavar="FILE")
    ] = None,
    exclude: Annotated[
        list[Path] | None, option("Drop photos that are in this folder too; repeatable.", metavar="DIR")
    ] = None,
    distractors: Annotated[
        list[Path] | None, option("Photos of other people; repeatable.", metavar="DIR")
    ] = None,
    detector: DetectorOption = None,
    descriptor: DescriptorOption = None,
    min_face: MinFaceOption = None,
    accept_query: Annotated[
        float | None, option("Accept a best name of the query above this score [default: 0.2].")
    ] = None,
    accept_other: Annotated[
        float | None, option("Accept another best name from this score on [default: 0.8].")
    ] = None,
    unknown_below: Annotated[
        float | None, option("Below this, another best name means unknown [default: 0.4].")
    ] = None,
    split: Annotated[
        str | None,
        option("Shares of people to train, validate, test [default: 0.5,0.1,0.4].", metavar="T,V,T"),
    ] = None,
    seed: Annotated[int | None, option("Seed of all random choices.", min=0)] = None,
) -> Result:
    """Begin a run in a new folder, or change settings of one that is there.

    Steps that depend on a changed setting are done again by `run`; answers of people stay.
    """
    from setnet.collect import CollectRun

    made = CollectRun.begin(
        run,
        portraits=portraits,
        photos=photos or None,
        names=names,
        exclude=exclude or None,
        distractors=distractors or None,
        detector=detector,
        descriptor=descriptor,
        min_face=min_face,
        accept_query=accept_query,
        accept_other=accept_other,
        unknown_below=unknown_below,
        split=None if split is None else _shares(split),
        seed=seed,
    )
    return Result(None, f"{made.path}: next, `setnet collect run {made.path}`")


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInputError(
            f"--split {text}: three shares that add up to 1 are expected, as in 0.5,0.1,0.4"
        ) from None


@command(app, "run", library=False, json=False, interrupted="the same command continues")
def run_all(
    call: Call,
    run: RunArgument,
    again: Annotated[
        str | None, option("Do this step again, as after photos were added.", metavar="STEP")
    ] = None,
    workers: WorkersOption = None,
) -> Result:
    """Do all steps that are left, up to the questions for a person.

    \b
    names        read the list of names and match it with the folders of portraits
    portraits    describe the main face of each portrait
    captions     read the texts of the photos: files beside them, data inside them, or their names
    pairs        find out who is together with whom: two rounds of searches per person
    photos       collect the photos of each pair, and drop those whose text lacks the names
    faces        find the faces, and drop photos with fewer than two
    duplicates   drop near-duplicates, and photos that are among the portraits or excluded folders
    labels       label each face by the rules: accepted, unknown, or a question for a person
    distractors  find the faces in the folders of distractors
    """
    from setnet.collect import CollectRun, run_status
    from setnet.collect import run_all as do_all

    opened = CollectRun.open(run)
    for report in do_all(opened, again=again, workers=workers, on_row=call.bar.show):
        call.tell(_describe_step(report))
    queue = run_status(opened).queue
    if queue is not None and queue.answered < queue.questions:
        faces = pluralise(queue.questions - queue.answered, "face waits", "faces wait")
        return Result(None, f"{faces} for a person: `setnet collect annotate {run}`")
    return Result(None, f"next, `setnet collect result {run} --out DIR`")


@command(app, library=False)
def status(call: Call, run: RunArgument) -> Result:
    """Show how far a run is, why photos were dropped, and ambiguous names."""
    from setnet.collect import CollectRun, run_status

    found = run_status(CollectRun.open(run))
    rows = []
    for step in found.steps:
        summary = step.summary
        counts = ("", "", "") if summary is None else (summary.rows, summary.kept, _reasons(summary))
        rows.append((step.name, step.state, *counts))
    columns = ["step", "", "entries", "kept", "dropped because"]
    table = Rows(columns, rows, right=["entries", "kept"])
    lines = [f"{found.pairs:,} pairs of people"] if found.pairs else []
    if found.queue is not None:
        lines.append(f"{found.queue.answered:,} of {found.queue.questions:,} questions answered")
    return Result(found, table, *lines, remarks=_notes(found))


def _notes(found: RunStatus) -> list[str]:
    notes = [
        f"note: no portrait of {name} can be used, so nobody is looked for by that name"
        for name in found.without_portrait
    ]
    return notes + [
        f"note: {form!r} could be {' or '.join(names)}; taken as nobody in {met} searches"
        for form, (met, names) in found.ambiguous.items()
        if met
    ]


@command(app, library=False, json=False)
def annotate(call: Call, run: RunArgument, port: PortOption = 8422, open_page: OpenOption = False) -> None:
    """Answer the questions: one face at a time on a page in the browser.

    Keys of the page: 1 to 5 for a name, 0 or u for unknown, d to drop the photo, z to undo. Every answer is
    on the disk before the next question comes.
    """
    from setnet.web import serve_annotation

    serve_annotation(run, port=port, open_page=open_page, say=say)


@command(app, library=False, json=False)
def result(
    call: Call,
    run: RunArgument,
    out: Annotated[Path, option("A new folder for the data set.", metavar="DIR")],
    unanswered: Annotated[
        str, option("Faces nobody answered about: refuse, unknown (as in the paper) or drop.")
    ] = "refuse",
    copy: Annotated[bool, option("Copy photos instead of linking them.", "--copy")] = False,
) -> Result:
    """Write the data set: photos, labels, descriptors, split by people, queries, statistics.

    `setnet train sets DIR`, `setnet evaluate retrieval --world DIR` and `setnet index DIR` take it as it is.
    """
    from setnet.collect import CollectRun, write_result

    opened = CollectRun.open(run)
    report = write_result(opened, out, unanswered=unanswered, copy=copy, on_row=call.bar.show)
    return Result(None, _describe_step(report))
