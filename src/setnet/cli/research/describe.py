"""`setnet describe`: descriptors of folders of photos, labelled by folder name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.shared_options import JsonOption, make_app
from setnet.wording import counted

app = make_app()


@app.command()
def describe(
    photos: Annotated[list[Path], typer.Argument(metavar="PHOTOS", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="FILE.npz", help="The descriptor file to write.")],
    all_faces: Annotated[
        bool, typer.Option("--all-faces", help="Also write the other faces of each photo, without a label.")
    ] = False,
    frames: Annotated[
        bool,
        typer.Option("--frames", help="Describe whole pictures of videos; a shot is a label."),
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.05, metavar="SECONDS", help="With --frames: between two pictures.")
    ] = 1.0,
    detector: Annotated[str, typer.Option(metavar="MODEL", help="cascade, mtcnn or yunet.")] = "mtcnn",
    descriptor: Annotated[
        str, typer.Option(metavar="MODEL", help="A descriptor model of `setnet models`.")
    ] = "sface",
    min_face: Annotated[
        float, typer.Option(min=1, metavar="PIXELS", help="Leave out faces smaller than this.")
    ] = 40,
    workers: Annotated[
        int | None,
        typer.Option(min=0, max=256, metavar="N", help="Worker processes [default: one per core]."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the descriptors of photos, each labelled with the name of the folder it lies in.

    From each photo the main face is taken: large and near the middle. The exit status is 1 when some photos
    could not be read or have no face.
    """
    from setnet.cli.library.index_progress import IndexProgressBar
    from setnet.cli.output import print_json, say
    from setnet.faces import FaceSettings
    from setnet.library import describe_photos, display_path

    if frames:
        _describe_frames(photos, out, descriptor, every, json)
        return
    settings = FaceSettings(detector=detector, descriptor=descriptor, min_face=min_face)
    with IndexProgressBar(silent=json) as bar:
        done = describe_photos(photos, out, settings, all_faces=all_faces, workers=workers, progress=bar.show)
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
        for path, reason in done.failed[:10]:
            say(f"could not be read: {display_path(path)}: {reason}")
        for path in done.without_face[:10]:
            say(f"no face: {display_path(path)}")
        typer.echo(
            f"{display_path(out)}: {counted(done.descriptors, 'descriptor')} of "
            f"{counted(done.labels, 'person', 'people')} "
            f"from {counted(done.photos, 'photo')} "
            f"({len(done.without_face):,} without a face, {len(done.failed):,} not readable)"
        )
    if done.failed or done.without_face:
        raise typer.Exit(1)


def _describe_frames(videos: list[Path], out: Path, descriptor: str, every: float, json: bool) -> None:
    from setnet.cli.output import print_json, say
    from setnet.library import describe_frames, display_path

    count, shots, failed = describe_frames(videos, out, descriptor, every=every)
    if json:
        reasons = [{"photo": path, "reason": reason} for path, reason in failed]
        print_json({"file": str(out), "descriptors": count, "shots": shots, "failed": reasons})
    else:
        for path, reason in failed[:10]:
            say(f"could not be read: {path}: {reason}")
        typer.echo(
            f"{display_path(out)}: {counted(count, 'descriptor')} of frames in {counted(shots, 'shot')}"
        )
    if failed:
        raise typer.Exit(1)
