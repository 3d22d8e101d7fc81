"""`setnet train`: pre-train a backbone, train sets, whiten, export; refit heads; the paper's networks."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from setnet.cli.command import Call, Result, command
from setnet.cli.options import argument, make_app, option
from setnet.cli.output import say

if TYPE_CHECKING:
    from setnet.train import TrainingSettings
    from setnet.train.loop import TrainReport

app = make_app()

DataArgument = Annotated[
    Path,
    argument(
        "DATA",
        "Folders of identities (DATA/person/*.jpg), a descriptor file (.npz), or a data set of "
        "`setnet collect`.",
    ),
]
OutOption = Annotated[Path, option("The run's folder; made or continued.", "--out", metavar="RUN")]
PresetOption = Annotated[str, option("default, paper, tiny, or a TOML file like theirs.", "--preset")]
ChangesOption = Annotated[
    list[str] | None,
    option("Override a setting, such as --set sets.steps=500; repeatable.", "--set", metavar="NAME=VALUE"),
]
DeviceOption = Annotated[str, option("cpu, cuda or cuda:NUMBER.", "--device")]
WorkersOption = Annotated[
    int | None,
    option(
        "Processes that load photos for each that trains [default: the cores, 8 at most].",
        "--workers",
        min=0,
        metavar="N",
    ),
]
ThreadsOption = Annotated[
    int, option("Threads of torch; 0 leaves it to torch.", "--threads", min=0, metavar="N")
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


@command(app, library=False)
def pretrain(
    call: Call,
    data: DataArgument,
    out: OutOption,
    preset: PresetOption = "default",
    changes: ChangesOption = None,
    device: DeviceOption = "cpu",
    workers: WorkersOption = None,
    threads: ThreadsOption = 0,
) -> Result | None:
    """Train a backbone by softmax on single faces."""
    settings = _prepare_settings(preset, changes, device, threads)
    from setnet.train import run_pretrain

    return _trained(
        out / "backbone.safetensors", run_pretrain(data, out, settings, device, _workers(workers))
    )


@command(app, library=False)
def sets(
    call: Call,
    data: DataArgument,
    out: OutOption,
    preset: PresetOption = "default",
    changes: ChangesOption = None,
    virtual: Annotated[
        bool,
        option("Train on people drawn from the distribution of DATA's descriptors.", "--virtual"),
    ] = False,
    device: DeviceOption = "cpu",
    workers: WorkersOption = None,
    threads: ThreadsOption = 0,
) -> Result | None:
    """Train the aggregator on synthetic sets: with its backbone, or on descriptors."""
    settings = _prepare_settings(preset, changes, device, threads)
    from setnet.train import run_sets

    report = run_sets(data, out, settings, device, virtual, _workers(workers))
    return _trained(out / "network.safetensors", report)


@command(app, library=False)
def whiten(
    call: Call,
    data: DataArgument,
    out: OutOption,
    place: Annotated[str, option("after: set vectors. before: descriptors, for average pooling.")] = "after",
    ridge: Annotated[
        float, option("Share of the mean variance added everywhere.", min=0.0, metavar="N")
    ] = 0.01,
    device: DeviceOption = "cpu",
) -> Result | None:
    """Fit whitening on training data and calibrate the score again."""
    from setnet.train import run_whiten
    from setnet.train.loop import use_device

    use_device(device)
    report = run_whiten(data, out, place, ridge, device)
    text = (
        f"{out / 'network.safetensors'}: whitened {report.place} aggregation on {report.vectors:,} vectors, "
        f"w = {report.w:.2f}, b = {report.b:.2f}"
    )
    return Result(report, text)


@command(app, library=False)
def export(
    call: Call,
    out: OutOption,
    name: Annotated[str, option("The head's name.")] = "setnet",
    descriptor: Annotated[str, option("Which descriptors a head without backbone expects.")] = "",
    bits: Annotated[int, option("Bits per dimension of a stored set vector: 32, 16, 8, 4, 1.")] = 32,
) -> Result | None:
    """Write the head for the run time, and the backbone as ONNX with its registry entry."""
    from setnet.train import run_export

    written = run_export(out, name, descriptor, bits)
    files = [path for path in (written.head, written.backbone, written.entry) if path is not None]
    return Result({"written": files}, *map(str, files))


@command(app, library=False)
def heads(
    call: Call,
    data: Annotated[Path, argument("DESCRIPTORS.npz", "Arrays `descriptors` and `labels`.")],
    out: Annotated[Path, option("The folder of the heads.", "--out", metavar="DIR")],
    name: Annotated[str, option("What they are called: NAME-128 and NAME-512.", metavar="NAME")] = "lift",
    degraded: Annotated[
        list[Path] | None,
        option("Descriptors of worse photos of the same people; repeatable.", metavar="FILE.npz"),
    ] = None,
    descriptor: Annotated[str, option("Which descriptors they are for [default: as the file says].")] = "",
    sets: Annotated[int, option("Sets of the test.", min=100, metavar="N")] = 64_000,
    seed: Annotated[int, option("Of the halves and of the test.", min=0, metavar="N")] = 0,
    page: Annotated[Path | None, option("Also put the tables into this page.", metavar="FILE.md")] = None,
) -> Result | None:
    """Refit the heads of 128 and 512 bytes to your own descriptors, and say what that gained.

    They are made in closed form from one half of the people, and compared with mean pooling, the heads that
    come with setnet and every descriptor kept, in sets of people of the other half.
    """
    from setnet.evaluate import refit_heads, stress
    from setnet.evaluate.report import write_section
    from setnet.evaluate.tables import conditions

    record = refit_heads(
        data,
        out,
        name,
        degraded=degraded or (),
        descriptor=descriptor,
        sets=sets,
        seed=seed,
        progress=lambda now: say(now.doing),
    )
    tables = stress.tables(record)
    if page is not None:
        write_section(page, f"heads {name}", f"Heads refitted: {name}", record, tables, "setnet train heads")
    files = sorted(map(str, out.glob(f"{name}-*.safetensors")))
    return Result({"heads": files}, *(table.markdown() for table in tables), conditions(record))


@command(app, library=False)
def paper(
    call: Call,
    data: Annotated[Path, argument("DATA", "Folders of identities, such as VGGFace2's.")],
    out: OutOption,
    preset: PresetOption = "paper",
    changes: ChangesOption = None,
    split: Annotated[
        Path | None,
        option('{"train": [names], "test": [names]} [default: the data\'s own].', metavar="FILE.json"),
    ] = None,
    sets: Annotated[int, option("Sets of the stress test.", min=100, metavar="N")] = 64_000,
    device: DeviceOption = "cpu",
    workers: WorkersOption = None,
    threads: ThreadsOption = 0,
) -> Result | None:
    """Train all networks of the paper's tables, whiten them and measure the stress test.

    Pre-trains by softmax, then trains every variant of Fig. 5 and of Tables 4 to 6. Continues where it
    stopped. Several processes: torchrun --nproc-per-node 2 -m setnet train paper ...
    """
    settings = _prepare_settings(preset, changes, device, threads)
    from setnet.evaluate import evaluate_claim, folder_domain, write_claim
    from setnet.evaluate.claim import tables
    from setnet.train.loop import own_device, process_group

    with process_group(own := own_device(device)) as group:
        domain = group.after_first(lambda: folder_domain(data, out, settings, split, sets))
        load = _workers(workers)
        result = evaluate_claim(domain, out, settings, device=own, workers=load, group=group, say=say)
    if group.rank > 0:
        return None
    page, shown = write_claim(result, out / "claim.md"), [table.markdown() for table in tables(result)]
    return Result({"page": page}, *shown, f"{page}: the tables")


def _workers(workers: int | None) -> int:
    from setnet.train.loop import default_workers

    return default_workers() if workers is None else workers


def _trained(file: Path, report: TrainReport) -> Result | None:
    if os.environ.get("RANK", "0") != "0":  # of several processes, one prints
        return None
    end = f"loss {report.last_loss:.4f}" if report.losses else "nothing was left to do"
    return Result({"file": file, "steps": report.steps}, f"{file}: {report.steps:,} steps, {end}")


def _prepare_settings(preset: str, changes: list[str] | None, device: str, threads: int) -> TrainingSettings:
    from setnet.train import load_settings
    from setnet.train.loop import use_device

    settings = load_settings(preset, changes or [])
    use_device(device, threads)
    return settings
