"""`setnet collect annotate`, `calibrate`: the part of a person, and its thresholds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.collect.run_options import RunArgument
from setnet.cli.output import print_json, print_table, say
from setnet.cli.shared_options import JsonOption, make_app

app = make_app()

AnnotatorOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who answers [default: the name of the login].", show_default=False),
]


@app.command()
def annotate(
    run: RunArgument,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take answers from a file like RUN/answers.jsonl."),
    ] = None,
    annotator: AnnotatorOption = None,
    twice: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of faces asked of a second person too, to measure agreement."),
    ] = 0.0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 8422,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
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
    precision: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Precision to reach.")] = 0.99,
    apply: Annotated[bool, typer.Option("--apply", help="Put them into the run's settings.")] = False,
    json: JsonOption = False,
) -> None:
    """Find the thresholds of equal precision for the descriptor in use, by the portraits alone.

    Each portrait is tried with its person in the list, and as a stranger with that name taken out.
    """
    from dataclasses import asdict

    from setnet.collect import CollectRun, calibrate_rules, gallery

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
