"""`setnet cluster`: create a cluster, run its head and workers, publish, check and grow it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from setnet.cli.cluster import processes
from setnet.cli.output import print_either, print_facts, print_json, print_table, say
from setnet.cli.shared_options import JsonOption, make_app

app = make_app()

Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="The cluster's folder, on storage that its machines share."),
]


@app.callback()
def cluster() -> None:
    """Keep and search a library's faces on many machines (extra `cluster`).

    On one machine: `create`, then `start`. On each other one: `join`. Then, anywhere, `setnet index`,
    `setnet search` and `setnet serve` with `--cluster DIR`.
    """


@app.command()
def create(
    folder: Folder,
    shards: Annotated[int, typer.Option(min=1, max=4096, metavar="N", help="Number of shards.")] = 4,
    detector: Annotated[
        str | None, typer.Option(metavar="MODEL", help="As for `setnet index`; fixed per library.")
    ] = None,
    descriptor: Annotated[
        str | None, typer.Option(metavar="MODEL", help="As for `setnet index`; fixed per library.")
    ] = None,
) -> None:
    """Make an empty library whose faces are kept in shards."""
    from setnet.faces import FaceSettings
    from setnet.library import Library

    options = {"detector": detector, "descriptor": descriptor}
    chosen: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    settings = FaceSettings(**chosen)
    with Library.create(folder, settings, shards=shards) as library:
        typer.echo(f"cluster of {shards} shards: {library.path}")


app.command()(processes.start)  # listed in the order in which they are needed
app.command()(processes.join)


@app.command()
def status(folder: Folder, json: JsonOption = False) -> None:
    """Show the shards, what searches see of them, and which workers are there."""
    from setnet.cluster import cluster_folder, cluster_status

    found = cluster_status(cluster_folder(folder))
    if json:
        print_json(found.to_dict())
        return
    print_facts(
        [
            ("cluster", f"{found.path} ({found.cluster}, epoch {found.epoch})"),
            ("shards", f"{found.shards}, each served by up to {found.replicas} workers"),
            ("searched", f"{found.items:,} items (list {found.published})"),
            ("head", found.head or "not running: `setnet cluster start` starts it"),
        ]
    )
    if found.workers:
        rows = [(worker["name"], worker["address"], worker["threads"]) for worker in found.workers]
        print_table(["worker", "address", "threads"], rows, right=["threads"])
    elif found.head:
        say("no worker is there: `setnet cluster join` adds one")


@app.command()
def publish(folder: Folder, json: JsonOption = False) -> None:
    """Let searches see all that was stored so far, in all shards at once."""
    from setnet.cluster import cluster_folder, open_cluster

    with open_cluster(cluster_folder(folder)) as index:
        items = index.publish()
    print_either({"items": items}, f"{items:,} items are searched", json)


@app.command()
def check(folder: Folder, json: JsonOption = False) -> None:
    """Verify every byte of the published shards, and that each holds its own items."""
    from setnet.cluster import cluster_folder, open_cluster

    with open_cluster(cluster_folder(folder)) as index:
        report = index.check()
    print_either(report.to_dict(), "\n".join(report.problems) or "all shards are sound", json)
    if not report.ok:
        say(f"`setnet repair {folder}` repairs what it can; `setnet restore BACKUP` brings a backup back")
        raise typer.Exit(1)


@app.command()
def grow(
    folder: Folder,
    shards: Annotated[
        int, typer.Argument(metavar="SHARDS", help="More than there are; a multiple of that is the quickest.")
    ],
) -> None:
    """Spread the items over more shards; searches go on, and changes wait until it is done."""
    from setnet.cluster import cluster_folder, open_cluster

    with open_cluster(cluster_folder(folder)) as index:
        index.grow(shards)
    typer.echo(f"cluster of {shards} shards: {folder}")
