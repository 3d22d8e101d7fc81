"""`setnet pg`: search the faces in your own PostgreSQL."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.options import JsonOption, LibraryOption, make_app, open_library
from setnet.cli.output import print_json, print_table, say
from setnet.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from setnet.engine import Hit

app = make_app()

UriArgument = Annotated[
    str,
    typer.Argument(
        metavar="URI",
        help="postgresql://USER@HOST/DATABASE; keep the password in PGPASSWORD or ~/.pgpass.",
        show_default=False,
    ),
]
TableOption = Annotated[
    str, typer.Option(metavar="NAME", help="The table with one row per face, or SCHEMA.NAME.")
]


@app.callback()
def pg() -> None:
    """Search a table of your own PostgreSQL that has one row per face (extra `postgres`).

    The server needs the extension pgvector 0.8 or newer.
    """


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
    table: TableOption = "faces",
    item: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column that says which photo a face is in.")
    ] = "item",
    face: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column that orders the faces of a photo.")
    ] = "face",
    vector: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column with the descriptors.")
    ] = "vector",
    distance: Annotated[
        str,
        typer.Option(metavar="NAME", help="What the table's HNSW index was made for: cosine, ip or l2."),
    ] = "cosine",
    k: Annotated[int, typer.Option("-k", min=1, metavar="N", help="How many items to show.")] = 20,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE", help="fast (the faces nearest to each person); exact (every face is read)."
        ),
    ] = "fast",
    candidates: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many faces near each person are looked at first.")
    ] = 200,
    where: Annotated[
        str, typer.Option(metavar="JSON", help='Conditions on columns: \'{"year": {">=": 2019}}\'.')
    ] = "",
    at_least: Annotated[
        int, typer.Option(min=0, metavar="N", help="Only items with at least this many matches.")
    ] = 0,
    only: Annotated[bool, typer.Option("--only", help="Only items in which nothing else is.")] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="PERSON", help="Only items without this person; may be repeated."),
    ] = None,
    library: LibraryOption = None,
    json: JsonOption = False,
) -> None:
    """Find the items that contain these people: all of them first, then all but one, and so on.

    The exit status is 1 when none fits.
    """
    from setnet.connect import PostgresSets

    wanted: Any = None
    unwanted: Any = None
    if people or without:
        with open_library(library) as opened:
            wanted = [opened.person(text).descriptors for text in people or ()]
            unwanted = [opened.person(text).descriptors for text in without or ()] or None
    if query is not None:
        wanted = _vectors(query)
    elif not people:
        raise InvalidInputError("nothing is asked for: name people, or give vectors with --query FILE.npz")
    with PostgresSets(uri, table, item=item, face=face, vector=vector, distance=distance) as sets:
        hits = sets.search(
            wanted,
            k,
            mode,
            candidates=candidates,
            where=_conditions(where),
            at_least=at_least,
            only=only,
            without=unwanted,
        )
    _print(hits, json)
    if not hits:
        raise typer.Exit(1)


def _vectors(file: Path) -> NDArray[Any]:
    """Return the rows of the array ``query`` of an ``.npz`` file."""
    from setnet.library import read_arrays

    if not file.is_file():
        raise InvalidInputError(f"{file}: no such file; expected an .npz with an array 'query'")
    (rows,) = read_arrays(file, ("query",))
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise InvalidInputError(
            f"{file}: 'query' must be one row of numbers per query element, not {rows.shape}"
        )
    return rows


def _conditions(text: str) -> dict[str, Any] | None:
    try:
        found = json_format.loads(text) if text else None
    except ValueError:
        found = text
    if found is not None and not isinstance(found, dict):
        raise InvalidInputError(f"--where takes a JSON object such as '{{\"year\": 2019}}', not {text!r:.80}")
    return found


def _print(hits: list[Hit], json: bool) -> None:
    if json:
        print_json({"hits": [hit.to_dict() for hit in hits]})
    elif hits:
        rows = [(rank, f"{hit.score:.3f}", hit.id) for rank, hit in enumerate(hits, 1)]
        print_table(["", "score", "item"], rows, right=["", "score"])
    else:
        say("no item fits")
