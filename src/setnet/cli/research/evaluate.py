"""`setnet evaluate`: the experiments of the paper, one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.research import evaluate_options as shared
from setnet.cli.research.evaluate_output import experiment, print_result
from setnet.cli.shared_options import make_app

app = make_app()


@app.callback()
def evaluate() -> None:
    """Run the experiments of the paper: tables, plots and JSON of your own descriptors or of simulated ones.

    Without --descriptors the people are virtual, drawn from statistics of real descriptors. Ctrl-C keeps the
    finished rows. `report` makes one page of all results; `compare` shows them beside the paper's tables.
    """


@app.command()
@experiment("stress")
def stress(
    descriptors: shared.Descriptors = None,
    people: shared.People = None,
    json: shared.Json = None,
    plots: shared.Plots = None,
    methods: shared.MethodNames = None,
    heads: shared.Heads = None,
    repeats: shared.Repeats = 4,
    worlds: Annotated[int, typer.Option(min=1, help="Draw sets and queries so many times.")] = 3,
    seed: shared.Seed = 0,
    difficulty: shared.Difficulty = 1.7,
    sets: Annotated[int, typer.Option(min=100, help="Sets to search.")] = 64_000,
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 100,
) -> None:
    """Section 5.1: nDCG of every method as the number of faces per set grows from 2 to 5."""


@app.command()
@experiment("retrieval")
def retrieval(
    descriptors: shared.Descriptors = None,
    people: shared.People = None,
    json: shared.Json = None,
    plots: shared.Plots = None,
    methods: shared.MethodNames = None,
    heads: shared.Heads = None,
    repeats: shared.Repeats = 10,
    seed: shared.Seed = 0,
    difficulty: shared.Difficulty = 1.7,
    world: shared.World = None,
    scale: shared.Scale = 1.0,
    items: shared.Items = 50_000,
    lists: shared.Lists = None,
    queries: shared.Queries = 1000,
    merging: Annotated[bool, typer.Option(help="Also mean and max of the scores of three examples.")] = True,
) -> None:
    """Section 5.2: set vectors alone, one and three examples per person, query aggregation."""


@app.command()
@experiment("tradeoff")
def tradeoff(
    descriptors: shared.Descriptors = None,
    people: shared.People = None,
    json: shared.Json = None,
    plots: shared.Plots = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="Set vectors to try; repeatable [default: one head].",
            show_default=False,
        ),
    ] = None,
    heads: shared.Heads = None,
    repeats: shared.Repeats = 2,
    seed: shared.Seed = 0,
    difficulty: shared.Difficulty = 1.7,
    world: shared.World = None,
    scale: shared.Scale = 1.0,
    items: shared.Items = 50_000,
    lists: shared.Lists = None,
    queries: shared.Queries = 1000,
    baseline: Annotated[str, typer.Option(help="The baseline to re-rank too.")] = "mean +W",
    timed: Annotated[int, typer.Option(min=1, help="Queries timed one by one.")] = 100,
    work: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the indexes here.")] = None,
) -> None:
    """Section 5.3: quality against time and bytes, every mode of the engine, re-ranking and tags."""


def _on_single_faces(name: str, about: str) -> None:
    @app.command(name, help=about)
    @experiment(name)
    def command(
        descriptors: shared.Descriptors = None,
        people: shared.People = None,
        json: shared.Json = None,
        plots: shared.Plots = None,
        methods: shared.MethodNames = None,
        heads: shared.Heads = None,
        repeats: shared.Repeats = 10,
        seed: shared.Seed = 0,
        difficulty: shared.Difficulty = 1.7,
    ) -> None: ...


_on_single_faces("orthogonality", "Section 5.4: how orthogonal people's descriptors are, whitened and not.")
_on_single_faces(
    "identify", "1:N identification of single faces and verification, the paper's check of its descriptor."
)


@app.command()
@experiment("matching")
def matching(
    descriptors: shared.Descriptors = None,
    degraded: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.npz",
            help="Descriptors of degraded copies of the same photos; repeatable.",
            show_default=False,
        ),
    ] = None,
    people: shared.People = None,
    json: shared.Json = None,
    plots: shared.Plots = None,
    constants: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Write the fitted constants here.")
    ] = None,
    faces: Annotated[int, typer.Option(min=1, help="Faces in which absent people are searched.")] = 100_000,
    trials: Annotated[int, typer.Option(min=100, help="People tried per number of examples.")] = 8000,
    repeats: shared.Repeats = 5,
    seed: shared.Seed = 0,
    difficulty: shared.Difficulty = 1.0,
) -> None:
    """How sure a match is: false matches and recall of sure and maybe; what several examples change."""


@app.command()
@experiment("grouping")
def grouping(
    descriptors: Annotated[
        Path, typer.Option(metavar="FILE.npz", help="Descriptor file, as `setnet describe` writes it.")
    ],
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--other",
            metavar="FILE.npz",
            help="Of other photos of the same people, such as degraded copies; repeatable.",
            show_default=False,
        ),
    ] = None,
    json: shared.Json = None,
    repeats: shared.Repeats = 5,
    seed: shared.Seed = 0,
) -> None:
    """Unknown faces grouped by person, beside simpler ways: BCubed measures on people held out."""


@app.command()
@experiment("fit")
def fit(
    descriptors: Annotated[Path, typer.Argument(metavar="FILE.npz", help="Descriptor file.")],
    out: Annotated[Path | None, typer.Option(metavar="PEOPLE.npz", help="Write the parameters here.")] = None,
    half: Annotated[str, typer.Option(help="test, train, or all people.")] = "test",
    json: shared.Json = None,
    plots: shared.Plots = None,
    seed: shared.Seed = 0,
) -> None:
    """Fit virtual people to real ones and show how alike the similarities are."""


@app.command()
@experiment("end_to_end")
def photos(
    lfw: Annotated[Path, typer.Argument(metavar="LFW", help="LFW's folder of identities.")],
    lists: Annotated[Path, typer.Option(metavar="FILE.json", help="LFW's multi_person_photos.json.")],
    work: Annotated[
        Path, typer.Option(metavar="DIR", help="Composed photos and their library are kept here.")
    ],
    json: shared.Json = None,
    count: Annotated[int, typer.Option(min=10, help="Photos to compose.")] = 400,
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 60,
    repeats: shared.Repeats = 3,
    seed: shared.Seed = 0,
) -> None:
    """End-to-end, detector included: group photos composed of LFW pictures, indexed and searched."""


@app.command()
@experiment("video")
def video(
    lfw: Annotated[Path, typer.Argument(metavar="LFW", help="LFW's folder of identities.")],
    work: Annotated[Path, typer.Option(metavar="DIR", help="The clips and their library are kept here.")],
    json: shared.Json = None,
    shots: Annotated[int, typer.Option(min=8, help="Shots to compose.")] = 500,
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 100,
    seed: shared.Seed = 0,
) -> None:
    """Clips composed of LFW pictures: limits of shots, people in them, two-person queries."""


@app.command()
@experiment("collecting")
def collect(
    lfw: Annotated[Path, typer.Argument(metavar="LFW", help="LFW's folder of identities.")],
    lists: Annotated[Path, typer.Option(metavar="FILE.json", help="LFW's multi_person_photos.json.")],
    work: Annotated[Path, typer.Option(metavar="DIR", help="The archive and the run are kept here.")],
    json: shared.Json = None,
    count: Annotated[int, typer.Option(min=10, help="Photos to compose.")] = 600,
    detector: Annotated[str, typer.Option(metavar="MODEL", help="cascade, mtcnn or yunet.")] = "mtcnn",
    seed: shared.Seed = 0,
    workers: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Processes for photos [default: one per core].")
    ] = None,
) -> None:
    """`setnet collect` on photos composed of LFW pictures, with captions: pairs, copies, labels."""


@app.command()
def examples(
    work: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of `setnet evaluate photos`.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Contact sheets are written here.")],
    count: Annotated[int, typer.Option(min=1, help="How many queries.")] = 4,
    seed: shared.Seed = 0,
) -> None:
    """The paper's figures of top-5 results: contact sheets, matched faces in green, with nDCG@5."""
    from setnet.evaluate import write_examples

    for path, quality in write_examples(work, out, count, seed):
        typer.echo(f"{path}  nDCG@5 {quality:.1f}")


@app.command()
def degrade(
    photos: Annotated[Path, typer.Argument(metavar="PHOTOS", help="Folder of .jpg photos.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The copies are written here.")],
    kind: Annotated[
        str,
        typer.Option(
            help="coarse (few pixels, noisy, compressed), shaken (blurred, turned, hidden), small (far off)."
        ),
    ] = "coarse",
) -> None:
    """Write degraded copies of photos, to train or test on photos unlike the ones at hand."""
    from setnet.evaluate import degrade_photos

    typer.echo(f"{out}: {degrade_photos(photos, out, kind):,} degraded copies")


@app.command()
def compare(
    results: Annotated[list[Path], typer.Argument(metavar="FILE.json...", help="Results of experiments.")],
) -> None:
    """Show results beside the paper's own tables, with what differs in the set-up."""
    from setnet.evaluate import compared, read_record

    for path in results:
        for table in compared(read_record(path)):
            print_result(table)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with the JSON files of experiments.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE.html", help="[default: DIR/report.html]")] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Also put tables and plots into this page.")
    ] = None,
) -> None:
    """Build one self-contained page from all results in a folder."""
    from setnet.evaluate import write_markdown, write_page

    typer.echo(str(write_page(folder, out or folder / "report.html")))
    if markdown is not None:
        typer.echo(str(write_markdown(folder, markdown)))
