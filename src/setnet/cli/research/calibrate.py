"""`setnet calibrate`: fit the logistic score (w, b) to your own labelled descriptors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.shared_options import JsonOption, make_app

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
    """Fit (w, b) of the score sigmoid(w s + b): for single descriptors, or for a head's set vectors.

    Single descriptors are fitted by likelihood, set vectors by how well they rank sets of your people.
    """
    from setnet.cli.output import print_either, say
    from setnet.errors import InvalidInputError
    from setnet.library import read_descriptors
    from setnet.sets import Logistic

    if out is not None and head is None:
        raise InvalidInputError("--out writes a head: say which with --head")
    descriptors, labels = read_descriptors(data)
    logistic: Logistic
    if head is None:
        from setnet.learn import calibrate_elements

        fit = calibrate_elements(descriptors, labels)
        logistic = fit.logistic
        more: dict[str, float] = {
            "accuracy": fit.accuracy,
            "positives": fit.positives,
            "negatives": fit.negatives,
        }
        words = (
            f"{100 * fit.accuracy:.1f} % of {fit.positives:,} genuine and {fit.negatives:,} impostor pairs "
            "on the right side"
        )
    else:
        from setnet.evaluate import calibrate_head
        from setnet.sets import SetNet

        net = SetNet.load(head)
        ranked = calibrate_head(net, descriptors, labels)
        logistic = ranked.logistic
        more = {"ndcg10_before": ranked.before, "ndcg10": ranked.after}
        words = f"nDCG@10 of sets of these people {ranked.after:.1f}, {ranked.before:.1f} before"
        if out is not None:
            SetNet(net.head.with_logistic(logistic)).save(out, half=False)  # no weight changes by a rounding
            say(f"wrote {out}")
    text = f"w = {logistic.w:.3f}, b = {logistic.b:.3f} (a match from similarity {logistic.threshold:.3f})"
    facts = {"w": logistic.w, "b": logistic.b, "threshold": logistic.threshold}
    print_either(facts | more, f"{text}; {words}", json)
