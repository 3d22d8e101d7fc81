"""Descriptors as files: `setnet describe` and `export` write them, `calibrate` fits a score to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.options import (
    JsonOption,
    LibraryOption,
    WorkersOption,
    argument,
    make_app,
    open_library,
    option,
)
from setnet.cli.output import ProgressBar, print_either, print_json, print_table, say, say_some
from setnet.errors import InvalidInputError
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import CalibrationReport

app = make_app()


@app.command()
def describe(
    photos: Annotated[list[Path], argument("PHOTOS")],
    out: Annotated[Path, option("The descriptor file to write.", metavar="FILE.npz")],
    all_faces: Annotated[
        bool, option("Also write the other faces of each photo, without a label.", "--all-faces")
    ] = False,
    frames: Annotated[
        bool, option("Describe whole pictures of videos; a shot is a label.", "--frames")
    ] = False,
    every: Annotated[
        float, option("With --frames: between two pictures.", min=0.05, metavar="SECONDS")
    ] = 1.0,
    detector: Annotated[str, option("cascade, mtcnn or yunet.", metavar="MODEL")] = "mtcnn",
    descriptor: Annotated[str, option("A descriptor model of `setnet models`.", metavar="MODEL")] = "sface",
    min_face: Annotated[float, option("Leave out faces smaller than this.", min=1, metavar="PIXELS")] = 40,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Write the descriptors of photos, each labelled with the name of the folder it lies in.

    From each photo the main face is taken: large and near the middle. The exit status is 1 when some photos
    could not be read or have no face.
    """
    from setnet.faces import FaceSettings
    from setnet.library import describe_photos

    if frames:
        _describe_frames(photos, out, descriptor, every, json)
        return
    settings = FaceSettings(detector=detector, descriptor=descriptor, min_face=min_face)
    with ProgressBar(silent=json) as bar:
        done = describe_photos(
            photos, out, settings, all_faces=all_faces, workers=workers, progress=bar.show_index
        )
    facts = {
        "file": str(out),
        "photos": done.photos,
        "descriptors": done.descriptors,
        "labels": done.labels,
        "without_face": [str(p) for p in done.without_face],
        "failed": [{"photo": str(p), "reason": reason} for p, reason in done.failed],
        "seconds": round(done.seconds, 3),
    }
    if json:
        print_json(facts)
    else:
        say_some("could not be read:", [f"{display_path(path)}: {reason}" for path, reason in done.failed])
        say_some("no face:", [display_path(path) for path in done.without_face])
        typer.echo(
            f"{display_path(out)}: {pluralise(done.descriptors, 'descriptor')} of "
            f"{pluralise(done.labels, 'person', 'people')} "
            f"from {pluralise(done.photos, 'photo')} "
            f"({len(done.without_face):,} without a face, {len(done.failed):,} not readable)"
        )
    if done.failed or done.without_face:
        raise typer.Exit(1)


def _describe_frames(videos: list[Path], out: Path, descriptor: str, every: float, json: bool) -> None:
    from setnet.library import describe_frames

    count, shots, failed = describe_frames(videos, out, descriptor, every=every)
    if json:
        reasons = [{"photo": path, "reason": reason} for path, reason in failed]
        print_json({"file": str(out), "descriptors": count, "shots": shots, "failed": reasons})
    else:
        say_some("could not be read:", [f"{path}: {reason}" for path, reason in failed])
        typer.echo(
            f"{display_path(out)}: {pluralise(count, 'descriptor')} of frames in {pluralise(shots, 'shot')}"
        )
    if failed:
        raise typer.Exit(1)


@app.command()
def export(
    file: Annotated[Path, argument("FILE.npz")],
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Write the library's descriptors: descriptors, labels (of saved people), counts and paths of photos."""
    with open_library(library) as opened:
        written = opened.export(file)
    descriptors, photos = pluralise(written.faces, "descriptor"), pluralise(written.photos, "photo")
    text = f"{descriptors} of {photos}, {written.labelled:,} labelled"
    print_either({"file": str(file)} | written.to_dict(), f"{display_path(file)}: {text}", json)


@app.command()
def calibrate(
    data: Annotated[
        Path | None,
        argument(
            "[DESCRIPTORS.npz]", "Arrays `descriptors` and `labels`; without it, the people of the library."
        ),
    ] = None,
    head: Annotated[
        str | None, option("Calibrate this head; single descriptors without it.", metavar="NAME|FILE")
    ] = None,
    out: Annotated[
        Path | None, option("Write the head with the new score here.", metavar="FILE.safetensors")
    ] = None,
    library: LibraryOption = None,
    reset: Annotated[bool, option("Go back to the calibration of the descriptor model.", "--reset")] = False,
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
