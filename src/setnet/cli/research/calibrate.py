"""`setnet calibrate`: fit what similarities mean, to a library or to labelled descriptors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library

if TYPE_CHECKING:
    from setnet.library import CalibrationReport

app = make_app()


@app.command()
def calibrate(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DESCRIPTORS.npz]",
            help="Arrays `descriptors` and `labels`; without it, the people of the library.",
            show_default=False,
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Calibrate this head; single descriptors without it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.safetensors", help="Write the head with the new score here.")
    ] = None,
    library: LibraryOption = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Go back to the calibration of the descriptor model.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Fit what similarities mean to the people of a library, or a score to your own descriptors.

    Without a file, the library's saved people decide from which similarity on matches are sure in it: five
    or more with two example faces each. Searches use it from then on; --reset undoes it.

    With a file of labelled descriptors, (w, b) of the score sigmoid(w s + b) is fitted and printed: for
    single descriptors by likelihood, for a head's set vectors by how well they rank sets of your people.
    """
    if data is None:
        if head is not None or out is not None:
            raise typer.BadParameter("--head and --out are for a file of descriptors: name one")
        _calibrate_library(library, reset, json)
        return
    if library is not None or reset:
        raise typer.BadParameter("--library and --reset are for the people of a library: name no file")
    _calibrate_score(data, head, out, json)


def _calibrate_library(path: Path | None, reset: bool, json: bool) -> None:
    from setnet.cli.output import print_either, print_json

    with open_library(path) as library:
        if reset:
            library.store_calibration(None)
            text = "matches are judged by the constants of the descriptor model again"
            print_either({"calibrated": False}, text, json)
            return
        report = library.calibrate()
    if json:
        print_json({"calibrated": True, **report.to_dict()})
    else:
        _print_report(report)


def _print_report(report: CalibrationReport) -> None:
    from setnet.cli.output import print_table, say

    print_table(
        ["", "sure from", "maybe from", "own faces sure", "others' sure, per million"],
        [
            (name, f"{e.sure:.3f}", f"{e.maybe:.3f}", f"{e.recall:.1f} %", f"{e.false:.2f}")
            for name, e in (("before", report.before), ("after", report.after))
        ],
        right=["sure from", "maybe from", "own faces sure", "others' sure, per million"],
    )
    say(
        f"fitted to {report.faces:,} faces of {report.people:,} people, who are tried with one example each; "
        "`setnet calibrate --reset` undoes it"
    )


def _calibrate_score(data: Path, head: str | None, out: Path | None, json: bool) -> None:
    from setnet.cli.output import print_either, say
    from setnet.errors import InvalidInputError
    from setnet.heads import Logistic
    from setnet.library import read_descriptors

    if out is not None and head is None:
        raise InvalidInputError("--out writes a head: say which with --head")
    descriptors, labels = read_descriptors(data)
    logistic: Logistic
    if head is None:
        from setnet.train import calibrate_elements

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
        from setnet.heads import SetNet

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
