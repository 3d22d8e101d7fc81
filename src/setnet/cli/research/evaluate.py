"""`setnet evaluate`: the experiments of the paper, one command each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.options import make_app
from setnet.cli.research.evaluate_options import (
    Json,
    PeopleOptions,
    Plots,
    Repeats,
    Seed,
    TradeoffOptions,
    WorldOptions,
    with_options,
)
from setnet.cli.research.evaluate_output import print_result, running

app = make_app()


@app.callback()
def evaluate() -> None:
    """Run the experiments of the paper: tables, plots and JSON of your own descriptors or of simulated ones.

    Without --descriptors the people are virtual, drawn from statistics of real descriptors. Ctrl-C keeps the
    finished rows. `report` makes one page of all results; `compare` shows them beside the paper's tables.
    """


@app.command()
@with_options
def stress(
    options: PeopleOptions,
    sets: Annotated[int, typer.Option(min=100, help="Sets to search.")] = 64_000,
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")] = 100,
) -> None:
    """Section 5.1: nDCG of every method as the number of faces per set grows from 2 to 5."""
    from setnet.evaluate import run_stress

    source = options.source()
    halves = source.halves()
    methods = options.methods(halves, fitting_sets=min(6000, sets))
    names = methods.chosen(options.method)
    settings = source.people_settings() | {"sets": sets, "queries": queries} | options.settings()
    asked = {"sets": sets, "queries": queries, "repeats": options.repeats, "seed": options.seed}
    with running("stress", settings, options.json, options.plots, len(names) + 2) as (run, say):
        run_stress(run, halves, methods, names, **asked, say=say)


@app.command()
@with_options
def retrieval(
    options: WorldOptions,
    merging: Annotated[bool, typer.Option(help="Also mean and max of the scores of three examples.")] = True,
) -> None:
    """Section 5.2: set vectors alone, one and three examples per person, query aggregation."""
    from setnet.evaluate import VARIANTS, Asker, run_retrieval

    source = options.source()
    halves = source.halves()
    made = source.items_of(halves)
    methods = options.methods(halves)
    names = methods.chosen(options.method)
    settings = source.settings() | {"queries": options.queries} | options.settings()
    asker = Asker(made, options.queries // 2, options.queries - options.queries // 2, options.repeats)
    rows = len(names) * (len(VARIANTS) if merging else 2)
    with running("retrieval", settings, options.json, options.plots, rows) as (run, say):
        run_retrieval(run, made, methods, names, asker, merging=merging, say=say)


@app.command()
@with_options
def tradeoff(
    options: TradeoffOptions,
    baseline: Annotated[str, typer.Option(help="The baseline to re-rank too.")] = "mean +W",
    timed: Annotated[int, typer.Option(min=1, help="Queries timed one by one.")] = 100,
    work: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the indexes here.")] = None,
) -> None:
    """Section 5.3: quality against time and bytes, every mode of the engine, re-ranking and tags."""
    from setnet.evaluate import Asker, default_head, row_count, run_tradeoff

    source = options.source()
    halves = source.halves()
    made = source.items_of(halves)
    methods = options.methods(halves)
    names = methods.chosen(options.method) if options.method else [default_head(methods)]
    methods.chosen([baseline])
    settings = source.settings() | {"queries": options.queries, "timed": timed} | options.settings()
    asker = Asker(made, options.queries // 2, options.queries - options.queries // 2, options.repeats, timed)
    rows = row_count(names, baseline)
    with running("tradeoff", settings, options.json, options.plots, rows) as (run, say):
        run_tradeoff(run, made, methods, names, baseline, asker, work=work, say=say)


@app.command()
@with_options
def orthogonality(options: PeopleOptions) -> None:
    """Section 5.4: how orthogonal people's descriptors are, whitened and not."""
    from setnet.evaluate import run_orthogonality

    _on_people("orthogonality", run_orthogonality, options)


@app.command()
@with_options
def identify(options: PeopleOptions) -> None:
    """1:N identification of single faces and verification, the paper's check of its descriptor."""
    from setnet.evaluate import run_identify

    _on_people("identify", run_identify, options)


@app.command()
def fit(
    descriptors: Annotated[Path, typer.Argument(metavar="FILE.npz", help="Descriptor file.")],
    out: Annotated[Path | None, typer.Option(metavar="PEOPLE.npz", help="Write the parameters here.")] = None,
    half: Annotated[str, typer.Option(help="test, train, or all people.")] = "test",
    json: Json = None,
    plots: Plots = None,
    seed: Seed = 0,
) -> None:
    """Fit virtual people to real ones and show how alike the similarities are."""
    from setnet.evaluate import fingerprinted, read_people, run_fit

    people = read_people(descriptors)
    settings = {"descriptors": fingerprinted(descriptors), "half": half, "seed": seed}
    with running("fit", settings, json, plots, 2) as (run, say):
        run_fit(run, people, half, out, seed, say)


@app.command()
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
    """The whole road, detector included: group photos composed of LFW pictures, indexed and searched."""
    from setnet.evaluate import run_photos

    settings = {"count": count, "queries": queries, "repeats": repeats, "seed": seed}
    with running("photos", settings, json, None, 5) as (run, say):
        run_photos(run, lfw, lists, work, count=count, queries=queries, repeats=repeats, seed=seed, say=say)


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


def _on_people(name: str, experiment: Callable[..., None], options: PeopleOptions) -> None:
    source = options.source()
    halves = source.halves()
    methods = options.methods(halves)
    # of one face, the baselines are the descriptor itself
    heads = methods.head_names()
    names = [method for method in methods.chosen(options.method) if method in heads]
    settings = source.people_settings() | options.settings()
    with running(name, settings, options.json, options.plots, len(names) + 1) as (run, say):
        run.note(world=halves.name)
        experiment(run, halves.test, methods, names, repeats=options.repeats, seed=options.seed, say=say)
