"""`setnet pg`: set vectors in your own PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.output import print_either, print_json, print_table, say
from setnet.cli.shared_options import JsonOption, LibraryOption, make_app, open_library

if TYPE_CHECKING:
    from setnet.index import Hit

app = make_app()

UriArgument = Annotated[
    str,
    typer.Argument(
        metavar="URI",
        help="postgresql://USER@HOST/DATABASE; keep the password in PGPASSWORD or ~/.pgpass.",
        show_default=False,
    ),
]
SchemaOption = Annotated[str, typer.Option(metavar="NAME", help="The schema that the tables are in.")]
HeadOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The head that made the set vectors, if it is one of your own."),
]


@app.callback()
def pg() -> None:
    """Keep items with their set vectors in your own PostgreSQL, and search them there (extra `postgres`).

    The server needs the extension pgvector 0.7 or newer.
    """


@app.command()
def init(
    uri: UriArgument,
    head: Annotated[
        str, typer.Option(metavar="NAME", help="sface-512, sface-128, mean, or the file of a head of yours.")
    ] = "sface-512",
    dim: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Dimension of the elements [default: the head's]."),
    ] = None,
    partitions: Annotated[
        int, typer.Option(min=1, metavar="N", help="Divide the items among this many tables.")
    ] = 1,
    schema: SchemaOption = "setnet",
    json: JsonOption = False,
) -> None:
    """Make the tables, or bring those of an earlier version up to date."""
    from setnet.sources import PostgresSets

    with PostgresSets.create(uri, schema, head=head, dim=dim, partitions=partitions) as sets:
        facts = {"database": sets.name, "schema": schema} | sets.layout.as_json()
        text = (
            f"{sets.name}: tables in schema {schema!r} for {sets.layout.dim}-D elements, {head} set vectors"
        )
    print_either(facts, text, json)


@app.command()
def load(
    uri: UriArgument,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="An .npz file with ids, elements (or descriptors, as `setnet export` writes them), counts "
            "and attributes; or the folder of an index.",
            show_default=False,
        ),
    ],
    batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many items are stored in one transaction.")
    ] = 1000,
    schema: SchemaOption = "setnet",
    head: HeadOption = None,
    json: JsonOption = False,
) -> None:
    """Store items, replacing those with the same ids; a load that was interrupted can be repeated."""
    from setnet.sources import PostgresSets
    from setnet.sources import load as load_items

    def progress(done: int, items: int) -> None:
        if not json:
            say(f"{done:,} of {items:,} items stored")

    with PostgresSets(uri, schema, head=head) as sets:
        done = load_items(sets, source, batch, progress)
        text = f"{sets.name}: {done.items:,} items with {done.elements:,} elements stored"
    print_either(done.to_dict(), text, json)


@app.command()
def cells(
    uri: UriArgument,
    count: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Into how many cells [default: by the number of elements]."),
    ] = None,
    schema: SchemaOption = "setnet",
    head: HeadOption = None,
    json: JsonOption = False,
) -> None:
    """Divide the elements into cells, so that `setnet pg search --mode cells` reads a part of the items.

    Searches and loads go on meanwhile. A run that was interrupted is repeated from the start.
    """
    from setnet.sources import PostgresSets

    with PostgresSets(uri, schema, head=head) as sets:
        made = sets.make_cells(count)
        print_either({"cells": made}, f"{sets.name}: {made:,} cells", json)


@app.command()
def search(
    uri: UriArgument,
    people: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PERSON]...",
            help="As in `setnet search`: a name saved in the library, a photo, or a folder of photos.",
            show_default=False,
        ),
    ] = None,
    query: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Search for the vectors in its array `query`, one per row."),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="N", help="How many items to show.")] = 20,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="scan (all set vectors); cells (those near the query); exact (every element, in SQL).",
        ),
    ] = "scan",
    candidates: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many items are ranked by their elements.")
    ] = 500,
    probes: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many cells are read for each query element.")
    ] = 8,
    where: Annotated[
        str, typer.Option(metavar="JSON", help='Conditions on attributes: \'{"year": {">=": 2019}}\'.')
    ] = "",
    at_least: Annotated[
        int, typer.Option(min=0, metavar="N", help="Only items with at least this many matches.")
    ] = 0,
    only: Annotated[bool, typer.Option("--only", help="Only items in which nothing else is.")] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="PERSON", help="Only items without this person; may be repeated."),
    ] = None,
    schema: SchemaOption = "setnet",
    head: HeadOption = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Find the items that contain these people: all of them first, then all but one, and so on.

    The exit status is 1 when none fits.
    """
    from setnet.sources import PostgresSets, conditions_from, query_from

    unwanted: Any = None
    if people or without:
        with open_library(library) as opened:
            wanted: Any = [opened.person(text).descriptors for text in people or ()]
            unwanted = [opened.person(text).descriptors for text in without or ()] or None
    if query is not None or not people:
        wanted = query_from(query)
    with PostgresSets(uri, schema, head=head) as sets:
        hits = sets.search(
            wanted,
            k,
            mode,
            candidates=candidates,
            probes=probes,
            where=conditions_from(where),
            at_least=at_least,
            only=only,
            without=unwanted,
        )
    _print(hits, json)
    if not hits:
        raise typer.Exit(1)


def _print(hits: list[Hit], json: bool) -> None:
    if json:
        print_json({"hits": [hit.to_dict() for hit in hits]})
    elif hits:
        rows = [(rank, f"{hit.score:.3f}", hit.id) for rank, hit in enumerate(hits, 1)]
        print_table(["", "score", "item"], rows, right=["", "score"])
    else:
        say("no item fits")


@app.command()
def delete(
    uri: UriArgument,
    ids: Annotated[list[str], typer.Argument(metavar="ID", show_default=False)],
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Ids that are not stored are no error.")
    ] = False,
    schema: SchemaOption = "setnet",
    json: JsonOption = False,
) -> None:
    """Delete items with their elements and set vectors."""
    from setnet.sources import PostgresSets

    with PostgresSets(uri, schema) as sets:
        deleted = sets.delete(ids, missing_ok=missing_ok)
        print_either({"deleted": deleted}, f"{sets.name}: {deleted:,} items deleted", json)
