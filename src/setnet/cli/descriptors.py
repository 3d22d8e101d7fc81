"""Descriptors as files: `setnet describe` and `export` write them, `calibrate` fits a score to them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from setnet.cli.command import Call, Result, command
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

app = make_app()


@command(app, library=False)
def describe(
    call: Call,
    photos: Annotated[list[Path], argument("PHOTOS")],
    out: Annotated[Path, option("The descriptor file to write.", metavar="FILE.npz")],
    all_faces: Annotated[
        bool, option("Also write the other faces of each photo, without a label.", "--all-faces")
    ] = False,
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
    from setnet.library import describe_photos

    chosen = drop_unset(detector=detector, descriptor=descriptor, min_face=min_face)
    settings = FaceSettings(**chosen)
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
    return Result({"file": file} | asdict(written), text)


@command(app, library=False)
def calibrate(
    call: Call,
    data: Annotated[Path, argument("DESCRIPTORS.npz", "Arrays `descriptors` and `labels`.")],
    head: Annotated[
        str | None, option("Calibrate this head; single descriptors without it.", metavar="NAME|FILE")
    ] = None,
    out: Annotated[
        Path | None, option("Write the head with the new score here.", metavar="FILE.safetensors")
    ] = None,
) -> Result:
    """Fit a score to your own labelled descriptors, and print it.

    The score is sigmoid(w s + b): for single descriptors it is fitted by likelihood, for a head's set vectors
    by how well it ranks sets of your people.
    """
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
