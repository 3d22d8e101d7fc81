"""`setnet pg`: search the faces in your own PostgreSQL."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setnet.cli.options import JsonOption, LibraryOption, argument, make_app, open_library, option
from setnet.cli.output import print_rows
from setnet.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


app = make_app()

UriArgument = Annotated[
    str, argument("URI", "postgresql://USER@HOST/DATABASE; keep the password in PGPASSWORD or ~/.pgpass.")
]
TableOption = Annotated[str, option("The table with one row per face, or SCHEMA.NAME.", metavar="NAME")]


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
        argument(
            "[PERSON]...",
            "As in `setnet search`: a name saved in the library, a photo, or a folder of photos.",
        ),
    ] = None,
    query: Annotated[
        Path | None, option("Search for the vectors in its array `query`, one per row.", metavar="FILE.npz")
    ] = None,
    table: TableOption = "faces",
    item: Annotated[str, option("The column that says which photo a face is in.", metavar="COLUMN")] = "item",
    face: Annotated[str, option("The column that orders the faces of a photo.", metavar="COLUMN")] = "face",
    vector: Annotated[str, option("The column with the descriptors.", metavar="COLUMN")] = "vector",
    distance: Annotated[
        str, option("What the table's HNSW index was made for: cosine, ip or l2.", metavar="NAME")
    ] = "cosine",
    k: Annotated[int, option("How many items to show.", "-k", min=1, metavar="N")] = 20,
    mode: Annotated[
        str, option("fast (the faces nearest to each person); exact (every face is read).", metavar="MODE")
    ] = "fast",
    candidates: Annotated[
        int, option("How many faces near each person are looked at first.", min=1, metavar="N")
    ] = 200,
    where: Annotated[str, option('Conditions on columns: \'{"year": {">=": 2019}}\'.', metavar="JSON")] = "",
    at_least: Annotated[int, option("Only items with at least this many matches.", min=0, metavar="N")] = 0,
    only: Annotated[bool, option("Only items in which nothing else is.", "--only")] = False,
    without: Annotated[
        list[str] | None, option("Only items without this person; may be repeated.", metavar="PERSON")
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
    rows = [(rank, f"{hit.score:.3f}", hit.id) for rank, hit in enumerate(hits, 1)]
    facts = {"hits": [hit.to_dict() for hit in hits]}
    print_rows(facts, json, ["", "score", "item"], rows, "no item fits", right=["", "score"])
    if not hits:
        raise typer.Exit(1)


def _vectors(file: Path) -> NDArray[Any]:
    """Return the rows of the array ``query`` of an ``.npz`` file."""
    from setnet.library.descriptor_files import read_arrays

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
