"""`setnet evaluate`: the experiments of the paper, one command each, with progress, tables and plots."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from setnet.cli.options import make_app
from setnet.cli.output import ProgressBar, console, say

if TYPE_CHECKING:
    from setnet.evaluate import Progress, Record, Table

Descriptors = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.npz", help="Descriptor file, as `setnet describe` writes it.", show_default=False
    ),
]
People = Annotated[
    Path | None,
    typer.Option(
        metavar="PEOPLE.npz",
        help="Virtual people, as `setnet evaluate fit` writes them [default: like LFW's].",
        show_default=False,
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Keep rows here as they finish; the same command goes on from them."
    ),
]
Plots = Annotated[Path | None, typer.Option(metavar="DIR", help="Draw plots here, PNG and SVG.")]
MethodNames = Annotated[
    list[str] | None,
    typer.Option(
        "--method", metavar="NAME", help="Only these; repeatable [default: all].", show_default=False
    ),
]
Heads = Annotated[
    list[str] | None,
    typer.Option(
        "--head",
        metavar="FILE",
        help="A head's .safetensors, or a run's network.safetensors, to add; repeatable.",
        show_default=False,
    ),
]
Repeats = Annotated[int, typer.Option(min=1, help="With other query faces each time.")]
Seed = Annotated[int, typer.Option(min=0, help="Everything random follows from it.")]
Difficulty = Annotated[
    float,
    typer.Option(help="Spread of each virtual person's faces: 1 as on LFW, 1.7 as hard as the paper's."),
]
World = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="simulated, composed (of the descriptors), press (LFW), or a folder of `setnet collect` "
        "[default: by --descriptors].",
        show_default=False,
    ),
]
Scale = Annotated[float, typer.Option(help="Size of the simulated world; 1 is the paper's 549,000 items.")]
Items = Annotated[int, typer.Option(min=100, help="Items of a composed world.")]
Lists = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="LFW's multi_person_photos.json, for --world press.")
]
Queries = Annotated[int, typer.Option(min=2, help="Half of two people, half of three.")]


_P = ParamSpec("_P")


def _experiment(name: str) -> Callable[[Callable[_P, None]], Callable[_P, None]]:
    """Return the decorator for a command that runs ``setnet.evaluate.NAME`` with its own options."""

    def decorated(command: Callable[_P, None]) -> Callable[_P, None]:
        @wraps(command)
        def run(*_: _P.args, **options: _P.kwargs) -> None:
            import setnet.evaluate

            _show_experiment(getattr(setnet.evaluate, name), options)

        return run

    return decorated


def _show_experiment(call: Callable[..., Record], options: dict[str, Any]) -> None:
    """Run an experiment and show its progress, then its tables and plots; after Ctrl-C the finished rows."""
    from setnet.evaluate import Interrupted

    plots, path = options.pop("plots", None), options["json"]
    stopped = False
    with ProgressBar(line_seconds=0) as bar:  # each row takes long: each gets a line

        def progress(now: Progress) -> None:
            bar.show(now.doing, now.done, now.total)

        try:
            record = call(**options, progress=progress)
        except Interrupted as interrupted:
            record, stopped = interrupted.record, True
    _show_record(record, plots)
    if stopped:
        kept = (
            f"kept in {path}; the same command goes on from there" if path else "not kept: give --json FILE"
        )
        say(f"setnet: stopped after {len(record.rows)} rows, {kept}")
        raise typer.Exit(130)


def _show_record(record: Record, plots: Path | None) -> None:
    """Print the tables of a record and draw its plots."""
    from setnet.evaluate import tables_of
    from setnet.evaluate.tables import conditions

    for table in tables_of(record):
        _print_result(table)
    if record.rows:
        typer.echo(conditions(record))
    if plots is not None:
        from setnet.evaluate import plots_of

        for file in plots_of(record, plots):
            typer.echo(str(file))


def _print_result(table: Table) -> None:
    """Print a table with its bold cells."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(
        title=table.title, caption=table.note or None, box=box.SIMPLE_HEAD, title_justify="left"
    )
    for i, name in enumerate(table.columns):
        shown.add_column(name, justify="left" if i == 0 else "right")
    for r, row in enumerate(table.cells):
        shown.add_row(
            *(Text(cell, style="bold" if (r, c) in table.bold else "") for c, cell in enumerate(row))
        )
    console().print(shown)


app = make_app()


@app.callback()
def evaluate() -> None:
    """Run the experiments of the paper: tables, plots and JSON of your own descriptors or of simulated ones.

    Without --descriptors the people are virtual, drawn from statistics of real descriptors. Ctrl-C keeps the
    finished rows. `report` makes one page of all results; `compare` shows them beside the paper's tables.
    """


@app.command()
@_experiment("evaluate_stress")
def stress(
    descriptors: Descriptors = None,
    people: People = None,
    json: Json = None,
    plots: Plots = None,
    methods: MethodNames = None,
    heads: Heads = None,
    repeats: Repeats = 4,
    worlds: Annotated[int, typer.Option(min=1, help="Draw sets and queries so many times.")] = 3,
    seed: Seed = 0,
    difficulty: Difficulty = 1.7,
    sets: Annotated[int, typer.Option(min=100, help="Sets to search.")] = 64_000,
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 100,
) -> None:
    """Section 5.1: nDCG of every method as the number of faces per set grows from 2 to 5."""


@app.command()
@_experiment("evaluate_retrieval")
def retrieval(
    descriptors: Descriptors = None,
    people: People = None,
    json: Json = None,
    plots: Plots = None,
    methods: MethodNames = None,
    heads: Heads = None,
    repeats: Repeats = 10,
    seed: Seed = 0,
    difficulty: Difficulty = 1.7,
    world: World = None,
    scale: Scale = 1.0,
    items: Items = 50_000,
    lists: Lists = None,
    queries: Queries = 1000,
    merging: Annotated[bool, typer.Option(help="Also mean and max of the scores of three examples.")] = True,
) -> None:
    """Section 5.2: set vectors alone, one and three examples per person, query aggregation."""


@app.command()
@_experiment("evaluate_tradeoff")
def tradeoff(
    descriptors: Descriptors = None,
    people: People = None,
    json: Json = None,
    plots: Plots = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="Set vectors to try; repeatable [default: one head].",
            show_default=False,
        ),
    ] = None,
    heads: Heads = None,
    repeats: Repeats = 2,
    seed: Seed = 0,
    difficulty: Difficulty = 1.7,
    world: World = None,
    scale: Scale = 1.0,
    items: Items = 50_000,
    lists: Lists = None,
    queries: Queries = 1000,
    baseline: Annotated[str, typer.Option(help="The baseline to re-rank too.")] = "mean +W",
    timed: Annotated[int, typer.Option(min=1, help="Queries timed one by one.")] = 100,
    work: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the indexes here.")] = None,
) -> None:
    """Section 5.3: quality against time and bytes, every mode of the engine, re-ranking and tags."""


def _on_single_faces(name: str, about: str) -> None:
    @app.command(name, help=about)
    @_experiment(name)
    def command(
        descriptors: Descriptors = None,
        people: People = None,
        json: Json = None,
        plots: Plots = None,
        methods: MethodNames = None,
        heads: Heads = None,
        repeats: Repeats = 10,
        seed: Seed = 0,
        difficulty: Difficulty = 1.7,
    ) -> None: ...


_on_single_faces("orthogonality", "Section 5.4: how orthogonal people's descriptors are, whitened and not.")
_on_single_faces(
    "identify", "1:N identification of single faces and verification, the paper's check of its descriptor."
)


@app.command()
@_experiment("evaluate_matching")
def matching(
    descriptors: Descriptors = None,
    degraded: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.npz",
            help="Descriptors of degraded copies of the same photos; repeatable.",
            show_default=False,
        ),
    ] = None,
    people: People = None,
    json: Json = None,
    plots: Plots = None,
    constants: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Write the fitted constants here.")
    ] = None,
    faces: Annotated[int, typer.Option(min=1, help="Faces in which absent people are searched.")] = 100_000,
    trials: Annotated[int, typer.Option(min=100, help="People tried per number of examples.")] = 8000,
    repeats: Repeats = 5,
    seed: Seed = 0,
    difficulty: Difficulty = 1.0,
) -> None:
    """How sure a match is: false matches and recall of sure and maybe; what several examples change."""


@app.command()
@_experiment("evaluate_grouping")
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
    json: Json = None,
    repeats: Repeats = 5,
    seed: Seed = 0,
) -> None:
    """Unknown faces grouped by person, beside simpler ways: BCubed measures on people held out."""


@app.command()
@_experiment("fit_people")
def fit(
    descriptors: Annotated[Path, typer.Argument(metavar="FILE.npz", help="Descriptor file.")],
    out: Annotated[Path | None, typer.Option(metavar="PEOPLE.npz", help="Write the parameters here.")] = None,
    half: Annotated[str, typer.Option(help="test, train, or all people.")] = "test",
    json: Json = None,
    plots: Plots = None,
    seed: Seed = 0,
) -> None:
    """Fit virtual people to real ones and show how alike the similarities are."""


@app.command()
@_experiment("evaluate_end_to_end")
def photos(
    lfw: Annotated[Path, typer.Argument(metavar="LFW", help="LFW's folder of identities.")],
    lists: Annotated[Path, typer.Option(metavar="FILE.json", help="LFW's multi_person_photos.json.")],
    work: Annotated[
        Path, typer.Option(metavar="DIR", help="Composed photos and their library are kept here.")
    ],
    json: Json = None,
    count: Annotated[int, typer.Option(min=10, help="Photos to compose.")] = 400,
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 60,
    repeats: Repeats = 3,
    seed: Seed = 0,
) -> None:
    """End-to-end, detector included: group photos composed of LFW pictures, indexed and searched."""


@app.command()
@_experiment("video")
def video(
    lfw: Annotated[Path, typer.Argument(metavar="LFW", help="LFW's folder of identities.")],
    work: Annotated[Path, typer.Option(metavar="DIR", help="The clips and their library are kept here.")],
    json: Json = None,
    shots: Annotated[int, typer.Option(min=8, help="Shots to compose.")] = 500,
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 100,
    seed: Seed = 0,
) -> None:
    """Clips composed of LFW pictures: limits of shots, people in them, two-person queries."""


@app.command()
@_experiment("evaluate_collecting")
def collect(
    lfw: Annotated[Path, typer.Argument(metavar="LFW", help="LFW's folder of identities.")],
    lists: Annotated[Path, typer.Option(metavar="FILE.json", help="LFW's multi_person_photos.json.")],
    work: Annotated[Path, typer.Option(metavar="DIR", help="The archive and the run are kept here.")],
    json: Json = None,
    count: Annotated[int, typer.Option(min=10, help="Photos to compose.")] = 600,
    detector: Annotated[str, typer.Option(metavar="MODEL", help="cascade, mtcnn or yunet.")] = "mtcnn",
    seed: Seed = 0,
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
    seed: Seed = 0,
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
            _print_result(table)


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
