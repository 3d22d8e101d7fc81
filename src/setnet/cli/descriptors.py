"""Descriptors as files: `setnet describe` and `export` write them, `calibrate` fits a score to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import (
    DescriptorOption,
    DetectorOption,
    MinFaceOption,
    WorkersOption,
    argument,
    drop_unset,
    make_app,
    option,
)
from setnet.cli.output import files_with_reasons, first_lines, say
from setnet.errors import InvalidInputError
from setnet.library.paths import display_path
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.library import CalibrationReport

app = make_app()


@command(app, library=False)
def describe(
    call: Call,
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
    detector: DetectorOption = None,
    descriptor: DescriptorOption = None,
    min_face: MinFaceOption = None,
    workers: WorkersOption = None,
) -> Result:
    """Write the descriptors of photos, each labelled with the name of the folder it lies in.

    From each photo the main face is taken: large and near the middle. The exit status is 1 when some photos
    could not be read or have no face.
    """
    from setnet.faces import FaceSettings
    from setnet.library import describe_frames, describe_photos

    chosen = drop_unset(detector=detector, descriptor=descriptor, min_face=min_face)
    settings = FaceSettings(**chosen)
    if frames:
        count, shots, failures = describe_frames(photos, out, settings.descriptor, every=every)
        facts = {"file": out, "descriptors": count, "shots": shots}
        facts["failed"] = [{"photo": path, "reason": reason} for path, reason in failures]
        text = f"{pluralise(count, 'descriptor')} of frames in {pluralise(shots, 'shot')}"
        remarks = first_lines("could not be read:", files_with_reasons(failures))
        return Result(facts, f"{display_path(out)}: {text}", remarks=remarks, status=bool(failures))
    done = describe_photos(
        photos, out, settings, all_faces=all_faces, workers=workers, progress=call.bar.show_index
    )
    facts = {
        "file": out,
        "photos": done.photos,
        "descriptors": done.descriptors,
        "labels": done.labels,
        "without_face": done.without_face,
        "failed": [{"photo": path, "reason": reason} for path, reason in done.failed],
        "seconds": round(done.seconds, 3),
    }
    text = (
        f"{display_path(out)}: {pluralise(done.descriptors, 'descriptor')} of "
        f"{pluralise(done.labels, 'person', 'people')} from {pluralise(done.photos, 'photo')} "
        f"({len(done.without_face):,} without a face, {len(done.failed):,} not readable)"
    )
    remarks = first_lines("could not be read:", files_with_reasons(done.failed))
    remarks += first_lines("no face:", map(display_path, done.without_face))
    return Result(facts, text, remarks=remarks, status=bool(done.failed or done.without_face))


@command(app)
def export(call: Call, file: Annotated[Path, argument("FILE.npz")]) -> Result:
    """Write the library's descriptors: descriptors, labels (of saved people), counts and paths of photos."""
    written = call.library.photos.export(file)
    descriptors, photos = pluralise(written.faces, "descriptor"), pluralise(written.photos, "photo")
    text = f"{display_path(file)}: {descriptors} of {photos}, {written.labelled:,} labelled"
    return Result({"file": file} | written.to_dict(), text)


@command(app)
def calibrate(
    call: Call,
    data: Annotated[
        Path | None,
        argument(
            "DESCRIPTORS.npz", "Arrays `descriptors` and `labels`; without it, the people of the library."
        ),
    ] = None,
    head: Annotated[
        str | None, option("Calibrate this head; single descriptors without it.", metavar="NAME|FILE")
    ] = None,
    out: Annotated[
        Path | None, option("Write the head with the new score here.", metavar="FILE.safetensors")
    ] = None,
    reset: Annotated[bool, option("Go back to the calibration of the descriptor model.", "--reset")] = False,
) -> Result:
    """Fit what similarities mean to the people of a library, or a score to your own descriptors.

    Without a file, the library's saved people decide from which similarity on matches are sure in it: five
    or more with two example faces each. Searches use it from then on; --reset undoes it.

    With a file of labelled descriptors, (w, b) of the score sigmoid(w s + b) is fitted and printed: for
    single descriptors by likelihood, for a head's set vectors by how well they rank sets of your people.
    """
    if data is not None:
        if call.chosen is not None or reset:
            raise typer.BadParameter("--library and --reset are for the people of a library: name no file")
        return _calibrate_score(data, head, out)
    if head is not None or out is not None:
        raise typer.BadParameter("--head and --out are for a file of descriptors: name one")
    if reset:
        call.library.matching.store_model(None)
        text = "matches are judged by the constants of the descriptor model again"
        return Result({"calibrated": False}, text)
    return _report_calibration(call.library.calibrate())


def _report_calibration(report: CalibrationReport) -> Result:
    columns = ["", "sure from", "maybe from", "own faces sure", "others' sure, per million"]
    rows = [
        (name, f"{e.sure:.3f}", f"{e.maybe:.3f}", f"{e.recall:.1f} %", f"{e.false:.2f}")
        for name, e in (("before", report.before), ("after", report.after))
    ]
    remark = (
        f"fitted to {report.faces:,} faces of {report.people:,} people, who are tried with one example each; "
        "`setnet calibrate --reset` undoes it"
    )
    facts = {"calibrated": True, **report.to_dict()}
    return Result(facts, Rows(columns, rows, right=columns[1:]), remarks=[remark])


def _calibrate_score(data: Path, head: str | None, out: Path | None) -> Result:
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
            f"{100 * fit.accuracy:.1f} % of {fit.positives:,} genuine and {fit.negatives:,} non-matching "
            "pairs on the right side"
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
    return Result(facts | more, f"{text}; {words}")
