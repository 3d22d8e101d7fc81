"""`setnet collect`: a labelled data set out of an archive of photos with captions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.options import JsonOption, WorkersOption, argument, make_app, option
from setnet.cli.output import ProgressBar, print_json, print_table, say
from setnet.errors import InvalidInputError

if TYPE_CHECKING:
    from setnet.collect import RunStatus, StepReport

RunArgument = Annotated[Path, argument("RUN", "The run's folder.")]
AgainOption = Annotated[bool, option("Do it anew, as after photos were added.", "--again")]


def _print_step(report: StepReport) -> None:
    """Print what a step did."""
    summary = report.summary
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in summary.reasons.most_common())
    state = " (was done)" if report.was_done else ""
    typer.echo(
        f"{report.name}{state}: {summary.kept:,} of {summary.rows:,} kept"
        + (f"; {dropped}" if dropped else "")
    )


app = make_app()

_STEPS = {
    "names": "Read the list of names and match it with the folders of portraits.",
    "portraits": "Describe the main face of each portrait.",
    "captions": "Read the texts of the photos: files beside them, data inside them, or their names.",
    "pairs": "Find out who is together with whom: two rounds of searches per person.",
    "photos": "Collect the photos of each pair, and drop those whose text lacks the names.",
    "faces": "Find the faces, and drop photos with fewer than two.",
    "duplicates": "Drop near-duplicates, and photos that are among the portraits or excluded folders.",
    "labels": "Label each face by the rules: accepted, unknown, or a question for a person.",
    "distractors": "Find the faces in the folders of distractors.",
}


@app.callback()
def collect() -> None:
    """Make a labelled data set of people together out of an archive of photos with captions.

    begin, run, annotate, result is the way; each step of run is a command of its own too. Every step writes
    RUN/STEP.jsonl, which says why each photo was kept or dropped, and goes on where it was cut short.
    """


@app.command()
def begin(
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
    names_needed: Annotated[
        int | None, option("Names of a pair that a text must have [default: 2].", min=1, max=2)
    ] = None,
    detector: Annotated[str | None, option("[default: mtcnn]", metavar="MODEL")] = None,
    descriptor: Annotated[str | None, option("[default: sface]", metavar="MODEL")] = None,
    min_face: Annotated[
        float | None, option("Smallest face to find [default: 40].", min=1, metavar="PIXELS")
    ] = None,
    accept_query: Annotated[
        float | None, option("Accept a best name of the query above this score [default: 0.2].")
    ] = None,
    accept_other: Annotated[
        float | None, option("Accept another best name from this score on [default: 0.8].")
    ] = None,
    unknown_below: Annotated[
        float | None, option("Below this, another best name means unknown [default: 0.4].")
    ] = None,
    classifier: Annotated[
        Path | None, option("Your own: names, weights, bias [default: by portraits].", metavar="FILE.npz")
    ] = None,
    split: Annotated[
        str | None,
        option("Shares of people to train, validate, test [default: 0.5,0.1,0.4].", metavar="T,V,T"),
    ] = None,
    seed: Annotated[int | None, option("Everything random follows from it.", min=0)] = None,
) -> None:
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
        names_needed=names_needed,
        detector=detector,
        descriptor=descriptor,
        min_face=min_face,
        accept_query=accept_query,
        accept_other=accept_other,
        unknown_below=unknown_below,
        classifier=classifier,
        split=None if split is None else _shares(split),
        seed=seed,
    )
    typer.echo(f"{made.path}: next, `setnet collect run {made.path}`")


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInputError(
            f"--split {text}: three shares that add up to 1 are expected, as in 0.5,0.1,0.4"
        ) from None


@app.command("run")
def run_all(run: RunArgument, workers: WorkersOption = None) -> None:
    """Do all steps that are left, up to the questions for a person."""
    from setnet.collect import CollectRun, run_status
    from setnet.collect import run_all as do_all

    opened = CollectRun.open(run)
    with ProgressBar() as progress:
        for report in do_all(opened, workers=workers, on_row=progress.show):
            _print_step(report)
    queue = run_status(opened).queue
    if queue is not None and queue.answered < queue.questions:
        typer.echo(
            f"{queue.questions - queue.answered:,} faces wait for a person: `setnet collect annotate {run}`"
        )
    else:
        typer.echo(f"next, `setnet collect result {run} --out DIR`")


def _add_step(name: str, about: str) -> None:
    @app.command(name, help=f"{about} Nothing is done twice.")
    def step(run: RunArgument, again: AgainOption = False, workers: WorkersOption = None) -> None:
        from setnet.collect import CollectRun, run_step

        with ProgressBar() as progress:
            report = run_step(CollectRun.open(run), name, again=again, workers=workers, on_row=progress.show)
        _print_step(report)


for _name, _about in _STEPS.items():
    _add_step(_name, _about)


@app.command()
def status(run: RunArgument, json: JsonOption = False) -> None:
    """Show how far a run is, why photos were dropped, ambiguous names, and how annotators agree."""
    from setnet.collect import CollectRun, run_status

    found = run_status(CollectRun.open(run))
    if json:
        print_json(asdict(found))
    else:
        _print_status(found)


def _print_status(found: RunStatus) -> None:
    rows = []
    for step in found.steps:
        summary = step.summary
        reasons = "" if summary is None else ", ".join(f"{r} {n:,}" for r, n in summary.reasons.most_common())
        counts = ("", "") if summary is None else (f"{summary.rows:,}", f"{summary.kept:,}")
        rows.append((step.name, step.state, *counts, reasons))
    print_table(["step", "", "entries", "kept", "dropped because"], rows, right=["entries", "kept"])
    if found.pairs:
        typer.echo(f"{found.pairs:,} pairs of people")
    for name in found.without_portrait:
        say(f"note: no portrait of {name} can be used, so nobody is looked for by that name")
    for form, (met, names) in found.ambiguous.items():
        if met:
            say(f"note: {form!r} could be {' or '.join(names)}; taken as nobody in {met} searches")
    if found.queue is not None:
        typer.echo(f"{found.queue.answered:,} of {found.queue.questions:,} questions answered")
    for each in found.agreement:
        typer.echo(
            f"{each.first} and {each.second} agree on {each.agreed:,} of {each.faces:,} faces, "
            f"Cohen's kappa {each.kappa:.3f}"
        )


AnnotatorOption = Annotated[
    str | None, option("Who answers [default: the name of the login].", metavar="NAME")
]


@app.command()
def annotate(
    run: RunArgument,
    answers: Annotated[
        Path | None, option("Take answers from a file like RUN/answers.jsonl.", metavar="FILE")
    ] = None,
    annotator: AnnotatorOption = None,
    twice: Annotated[
        float, option("Share of faces asked of a second person too, to measure agreement.", min=0, max=1)
    ] = 0.0,
    port: Annotated[int, option("Port of the page; 0 takes a free one.", min=0, max=65535)] = 8422,
    open_page: Annotated[bool, option("Open the page in the browser.", "--open")] = False,
) -> None:
    """Answer the questions: one face at a time on a page in the browser, or from a file.

    Keys of the page: 1 to 5 for a name, 0 or u for unknown, d to drop the photo, z to undo. Every answer is
    on the disk before the next question comes.
    """
    from setnet.collect import AnnotationQueue, CollectRun, import_answers
    from setnet.system import login_name

    opened, who = CollectRun.open(run), annotator or login_name()
    if answers is None:
        from setnet.web import serve_annotation

        serve_annotation(opened.path, who, twice=twice, port=port, open_page=open_page, say=say)
        return
    with opened.locked("answers"):
        queue = AnnotationQueue(opened, twice)
        done = import_answers(queue, answers, who)
        state = queue.state()
    if done.not_asked:
        say(f"note: {done.not_asked:,} answers are about faces that are not asked")
    typer.echo(
        f"{done.stored:,} answers stored, {done.known:,} were there; "
        f"{state.answered:,} of {state.questions:,} questions answered"
    )


@app.command()
def calibrate(
    run: RunArgument,
    precision: Annotated[float, option("Precision to reach.", min=0.5, max=0.9999)] = 0.99,
    apply: Annotated[bool, option("Put them into the run's settings.", "--apply")] = False,
    json: JsonOption = False,
) -> None:
    """Find the thresholds of equal precision for the descriptor in use, by the portraits alone.

    Each portrait is tried with its person in the list, and as a stranger with that name taken out.
    """
    from setnet.collect import CollectRun, calibrate_rules
    from setnet.collect.faces import gallery

    opened = CollectRun.open(run)
    found = calibrate_rules(gallery(opened), opened.settings.rules, opened.settings.strangers, precision)
    if apply:
        values = {each.name: each.suggested for each in found.thresholds}
        CollectRun.begin(run, **values)
    if json:
        print_json(asdict(found))
        return
    print_table(
        ["threshold", "in use", "precision", "suggested", "precision of it"],
        [
            (
                each.name,
                f"{each.value:.2f}",
                f"{each.precision:.4f}",
                f"{each.suggested:.2f}",
                f"{each.suggested_precision:.4f}",
            )
            for each in found.thresholds
        ],
        right=["in use", "precision", "suggested", "precision of it"],
    )
    typer.echo(f"measured on {found.portraits:,} portraits of {found.people:,} people")
    if apply:
        typer.echo("the run has these thresholds now: `setnet collect run` labels anew")


@app.command()
def result(
    run: RunArgument,
    out: Annotated[Path, option("A new folder for the data set.", metavar="DIR")],
    unanswered: Annotated[
        str, option("Faces nobody answered about: refuse, unknown (as in the paper) or drop.")
    ] = "refuse",
    copy: Annotated[bool, option("Copy photos instead of linking them.", "--copy")] = False,
) -> None:
    """Write the data set: photos, labels, descriptors, split by people, queries, statistics, data card.

    `setnet train sets DIR`, `setnet evaluate retrieval --world DIR` and `setnet index DIR` take it as it is.
    """
    from setnet.collect import CollectRun, write_result

    with ProgressBar() as progress:
        report = write_result(
            CollectRun.open(run), out, unanswered=unanswered, copy=copy, on_row=progress.show
        )
    _print_step(report)
    typer.echo(f"{out}: README.md is its data card")
