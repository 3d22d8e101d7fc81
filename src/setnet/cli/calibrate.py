"""`setnet calibrate`: fit the logistic score (w, b) to your own labelled descriptors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.options import JsonOption, make_app

app = make_app()


@app.command()
def calibrate(
    data: Annotated[
        Path, typer.Argument(metavar="DESCRIPTORS.npz", help="Arrays `descriptors` and `labels`.")
    ],
    head: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Calibrate this head; single descriptors without it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.safetensors", help="Write the head with the new score here.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Fit (w, b) of the score sigmoid(w s + b): for single descriptors, or for a head's set vectors."""
    from setnet.cli.output import print_json, say
    from setnet.errors import InvalidInputError
    from setnet.learn.calibration import calibrate_elements, calibrate_head
    from setnet.learn.descriptor_file import read_descriptors

    if out is not None and head is None:
        raise InvalidInputError("--out writes a head: say which with --head")
    descriptors, labels = read_descriptors(data)
    if head is None:
        fit = calibrate_elements(descriptors, labels)
    else:
        from setnet.sets import SetNet

        net = SetNet.load(head)
        fit = calibrate_head(net, descriptors, labels)
        if out is not None:
            SetNet(net.head.with_logistic(fit.logistic)).save(out)
            say(f"wrote {out}")
    facts = {
        "w": fit.logistic.w,
        "b": fit.logistic.b,
        "threshold": fit.logistic.threshold,
        "accuracy": fit.accuracy,
        "positives": fit.positives,
        "negatives": fit.negatives,
    }
    if json:
        print_json(facts)
    else:
        typer.echo(
            f"w = {fit.logistic.w:.3f}, b = {fit.logistic.b:.3f} (a match from similarity "
            f"{fit.logistic.threshold:.3f}); {100 * fit.accuracy:.1f} % of {fit.positives:,} true and "
            f"{fit.negatives:,} wrong pairs on the right side"
        )
