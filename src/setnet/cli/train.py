"""`setnet train`: pre-train a backbone, train sets, whiten, export; and the paper's claim at a small size."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.options import make_app
from setnet.cli.output import say
from setnet.errors import InvalidInputError, choice_error

if TYPE_CHECKING:
    from setnet.train import TrainingSettings, TrainReport

app = make_app()

DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Folders of identities (DATA/person/*.jpg), a descriptor file (.npz), or a data set of "
        "`setnet collect`.",
    ),
]
OutOption = Annotated[Path, typer.Option("--out", metavar="RUN", help="The run's folder; made or continued.")]
PresetOption = Annotated[str, typer.Option("--preset", help="adapt, default, faces, glyphs, paper or tiny.")]
ChangesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Override a setting, such as --set sets.steps=500; repeatable."
    ),
]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:NUMBER.")]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, help="Threads of torch; 0 leaves it to torch.")
]


@app.callback()
def train() -> None:
    """Train face descriptors and set heads. Needs the extra: pip install 'setnet[train]'.

    The stages, in order: pretrain (photos only), sets, whiten, export. Each continues where it stopped when
    called again with the same folder and settings. Several processes: torchrun --nproc-per-node 2
    -m setnet train sets ...
    """
    # What training reports is logged; here it is for the person at the terminal.
    logging.basicConfig(format="%(message)s")
    logging.getLogger("setnet").setLevel(logging.INFO)


@app.command()
def pretrain(
    data: DataArgument,
    out: OutOption,
    preset: PresetOption = "default",
    changes: ChangesOption = None,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
) -> None:
    """Train a backbone by softmax on single faces."""
    settings = _prepare_settings(preset, changes, device, threads)
    from setnet.train import run_pretrain

    report = run_pretrain(data, out, settings, device)
    _echo_once(f"{out / 'backbone.safetensors'}: {_outcome(report)}")


@app.command()
def sets(
    data: DataArgument,
    out: OutOption,
    preset: PresetOption = "default",
    changes: ChangesOption = None,
    virtual: Annotated[
        bool,
        typer.Option("--virtual", help="Train on people drawn from the distribution of DATA's descriptors."),
    ] = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
) -> None:
    """Train the aggregator on synthetic sets: with its backbone, or on descriptors."""
    settings = _prepare_settings(preset, changes, device, threads)
    from setnet.train import run_sets

    report = run_sets(data, out, settings, device, virtual)
    _echo_once(f"{out / 'network.safetensors'}: {_outcome(report)}")


@app.command()
def whiten(
    data: DataArgument,
    out: OutOption,
    place: Annotated[
        str, typer.Option(help="after: set vectors. before: descriptors, for average pooling.")
    ] = "after",
    ridge: Annotated[
        float, typer.Option(min=0.0, help="Share of the mean variance added everywhere.")
    ] = 0.01,
) -> None:
    """Fit whitening on training data and calibrate the score again."""
    from setnet.train import run_whiten

    report = run_whiten(data, out, place, ridge)
    typer.echo(
        f"{out / 'network.safetensors'}: whitened {report.place} aggregation on {report.vectors:,} vectors, "
        f"w = {report.w:.2f}, b = {report.b:.2f}"
    )


@app.command()
def export(
    out: OutOption,
    name: Annotated[str, typer.Option(help="The head's name.")] = "setnet",
    descriptor: Annotated[str, typer.Option(help="Which descriptors a head without backbone expects.")] = "",
    bits: Annotated[
        int, typer.Option(help="Bits per dimension of a stored set vector: 32, 16, 8, 4, 1.")
    ] = 32,
) -> None:
    """Write the head for the run time, and the backbone as ONNX with its registry entry."""
    from setnet.train import run_export

    written = run_export(out, name, descriptor, bits)
    for path in (written.head, written.backbone, written.entry):
        if path is not None:
            typer.echo(str(path))


@app.command()
def glyphs(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Draw them into this folder.")
    ] = None,
    size: Annotated[int, typer.Option(min=8, help="Pixels of a picture's side.")] = 36,
    packages: Annotated[
        bool, typer.Option("--packages", help="Print the Debian packages of the typefaces, for apt-get.")
    ] = False,
) -> None:
    """Draw Chinese characters in many typefaces: thousands of identities to train on, and nobody's face.

    apt-get install $(setnet train glyphs --packages) installs the typefaces.
    """
    from setnet.train.glyphs import font_packages, load_glyphs

    if packages:
        typer.echo(" ".join(font_packages()))
    if out is not None:
        drawn = load_glyphs(out, size)
        typer.echo(
            f"{out}: {len(drawn.pictures):,} pictures of {len(set(drawn.characters.tolist())):,} characters "
            f"in {len(drawn.names)} typefaces, SHA-256 {drawn.checksum[:12]}"
        )


# A quarter of the steps.
_QUICK = ["pretrain.steps=1000", "pretrain.rate=0.05", "sets.steps=250", "sets.save_every=250"]


@app.command()
def claim(
    out: OutOption,
    data: Annotated[Path | None, typer.Argument(metavar="LFW", help="LFW's folders, for faces.")] = None,
    domain: Annotated[str, typer.Option(help="glyphs: Chinese characters. faces: LFW.")] = "glyphs",
    preset: Annotated[
        str | None, typer.Option("--preset", help="Of the training [default: named as the domain].")
    ] = None,
    changes: ChangesOption = None,
    loss: Annotated[
        list[str] | None,
        typer.Option(
            "--loss", help="contrastive, logistic (the paper's) or hard; repeatable [default: contrastive]."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Train everything so often.")] = 1,
    worlds: Annotated[
        int | None,
        typer.Option(min=1, help="Test worlds [default: glyphs 3, faces 12, --quick 1]."),
    ] = None,
    without: Annotated[
        bool,
        typer.Option(
            "--without", help="Also leave out SetNet-2's parts one by one, and measure single elements."
        ),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A quarter of the steps.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="Also put the tables and the figure into this page."),
    ] = None,
    threads: ThreadsOption = 0,
) -> None:
    """Compare SetNet with the paper's baselines, all trained alike, on identities never seen.

    Continues where it stopped; more seeds and losses add to what is there. Pictures, networks and results are
    kept in RUN.
    """
    if domain not in ("faces", "glyphs"):
        raise choice_error("domain", domain, ["faces", "glyphs"])
    if (domain == "faces") != (data is not None):
        raise InvalidInputError(
            "--domain faces needs LFW's folder, glyphs none: see setnet train claim --help"
        )
    settings = _prepare_settings(
        preset or domain, [*(_QUICK if quick else ()), *(changes or ())], "cpu", threads
    )
    from setnet.evaluate import evaluate_claim as run
    from setnet.evaluate import faces_domain, glyphs_domain, tables_of, write_claim

    if data is not None:
        tested = faces_domain(data, out / "crops.npz", settings)
    else:
        tested = glyphs_domain(out / "glyphs", settings)
    result = run(
        tested,
        out,
        settings,
        seeds=seeds,
        worlds=worlds or (1 if quick else tested.worlds),
        losses=loss or ("contrastive",),
        without=without,
        say=say,
    )
    for table in tables_of(result):
        typer.echo(table.markdown())
    for page in [out / "claim.md", *([report] if report else [])]:
        typer.echo(f"{write_claim(result, page)}: tables and figure")


@app.command()
def adapt(
    photos: Annotated[Path, typer.Argument(metavar="LFW", help="LFW's folders.")],
    trained: Annotated[
        list[Path],
        typer.Option("--trained", metavar="DIR", help="Degraded copies to train on; repeatable."),
    ],
    out: OutOption,
    judged: Annotated[
        list[Path] | None,
        typer.Option("--judged", metavar="DIR", help="Other degraded copies, to judge by alone; repeatable."),
    ] = None,
    preset: PresetOption = "adapt",
    changes: ChangesOption = None,
    blocks: Annotated[
        int, typer.Option(min=0, max=13, help="Of SFace's 13 blocks, train so many last ones.")
    ] = 1,
    most: Annotated[int, typer.Option("--photos", min=3, help="Photos of a person, at most.")] = 4,
    sets: Annotated[int, typer.Option(min=100, help="Sets of the stress test.")] = 16_000,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Also put the tables into this page.")
    ] = None,
    threads: ThreadsOption = 0,
) -> None:
    """Adapt SFace to degraded photos on half of LFW's people; compare both on the other half.

    Its last blocks and layer learn to describe a degraded copy (setnet evaluate degrade) as the photo itself,
    and to tell sets apart. Continues where it stopped. setnet train export --out RUN writes the adapted
    network for setnet index --descriptor.
    """
    settings = _prepare_settings(preset, changes, "cpu", threads)
    from setnet.evaluate import evaluate_adaptation, tables_of, write_adaptation

    result = evaluate_adaptation(
        photos, trained, judged or [], out, settings, blocks=blocks, most=most, sets=sets, say=say
    )
    for table in tables_of(result):
        typer.echo(table.markdown())
    for page in [out / "adaptation.md", *([report] if report else [])]:
        typer.echo(f"{write_adaptation(result, page)}: verdict and tables")


@app.command()
def heads(
    data: Annotated[Path, typer.Argument(metavar="LFW.npz", help="Descriptor file of LFW.")],
    degraded: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.npz", help="Descriptors of degraded copies of the photos; repeatable."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Make this head; repeatable [default: all].")
    ] = None,
    evaluate_only: Annotated[
        bool, typer.Option("--evaluate-only", help="Make none; evaluate the heads as they are.")
    ] = False,
    make_only: Annotated[bool, typer.Option("--make-only", help="Do not evaluate.")] = False,
    card: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Put the figures into this page.")
    ] = None,
    sets: Annotated[int, typer.Option(min=100, help="Sets of the stress test.")] = 64_000,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the heads [default: inside the installed package]."),
    ] = None,
) -> None:
    """Make the heads that come with setnet from LFW's training half; evaluate them on its test half."""
    from setnet.evaluate import train_heads

    evaluations = train_heads(
        data,
        degraded or [],
        only=only or [],
        make=not evaluate_only,
        evaluate=not make_only,
        card=card,
        sets=sets,
        folder=out,
        say=say,
    )
    for evaluation in evaluations:
        typer.echo(evaluation.table().markdown())


def _outcome(report: TrainReport) -> str:
    end = f"loss {report.last_loss:.4f}" if report.losses else "nothing was left to do"
    return f"{report.steps:,} steps, {end}"


def _echo_once(text: str) -> None:
    if os.environ.get("RANK", "0") == "0":  # of several processes, one prints
        typer.echo(text)


def _prepare_settings(preset: str, changes: list[str] | None, device: str, threads: int) -> TrainingSettings:
    from setnet.train import load_settings
    from setnet.train.loop import use_device

    settings = load_settings(preset, changes or [])
    use_device(device, threads)
    return settings
