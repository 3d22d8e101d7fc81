"""`setnet collect result`: write the data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.collect.run_options import RunArgument, RunProgress, report_step
from setnet.cli.shared_options import make_app

app = make_app()


@app.command()
def result(
    run: RunArgument,
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder for the data set.")],
    unanswered: Annotated[
        str, typer.Option(help="Faces nobody answered about: refuse, unknown (as in the paper) or drop.")
    ] = "refuse",
    copy: Annotated[bool, typer.Option("--copy", help="Copy photos instead of linking them.")] = False,
) -> None:
    """Write the data set: photos, labels, descriptors, split by people, queries, statistics, data card.

    `setnet train sets DIR`, `setnet evaluate retrieval --world DIR` and `setnet index DIR` take it as it is.
    """
    from setnet.collect import CollectRun, write_result

    with RunProgress() as progress:
        report = write_result(
            CollectRun.open(run), out, unanswered=unanswered, copy=copy, on_row=progress.show
        )
    report_step(report)
    typer.echo(f"{out}: README.md is its data card")
