"""`setnet pg`: search the faces in your own PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import (
    AtLeastOption,
    LimitOption,
    OnlyOption,
    WithoutOption,
    argument,
    make_app,
    option,
)
from setnet.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


app = make_app()


@app.callback()
def pg() -> None:
    """Search a table of your own PostgreSQL that has one row per face (extra `postgres`).

    The server needs the extension pgvector 0.8 or newer.
    """


@command(app)
def search(
    call: Call,
    uri: Annotated[
        str,
        argument("URI", "postgresql://USER@HOST/DATABASE; keep the password in PGPASSWORD or ~/.pgpass."),
    ],
    people: Annotated[
        list[str] | None,
        argument("PERSON", "As in `setnet search`: a name saved in the library, a photo, or a folder."),
    ] = None,
    query: Annotated[
        Path | None, option("Search for the vectors in its array `query`, one per row.", metavar="FILE.npz")
    ] = None,
    table: Annotated[
        str, option("The table with one row per face, or SCHEMA.NAME.", metavar="NAME")
    ] = "faces",
    item: Annotated[str, option("The column that says which photo a face is in.", metavar="COLUMN")] = "item",
    face: Annotated[str, option("The column that orders the faces of a photo.", metavar="COLUMN")] = "face",
    vector: Annotated[str, option("The column with the descriptors.", metavar="COLUMN")] = "vector",
    distance: Annotated[
        str, option("What the table's HNSW index was made for: cosine, ip or l2.", metavar="NAME")
    ] = "cosine",
    limit: LimitOption = 20,
    candidates: Annotated[
        int, option("Look at the photos of so many faces nearest to each person.", min=1, metavar="N")
    ] = 200,
    where: Annotated[str, option('Conditions on columns: \'{"year": {">=": 2019}}\'.', metavar="JSON")] = "",
    at_least: AtLeastOption = 0,
    only: OnlyOption = False,
    without: WithoutOption = None,
) -> Result:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    The exit status is 1 when none fits.
    """
    from setnet.connect import PostgresSets

    queries: Any = [call.library.person(text).descriptors for text in people or ()]
    excluded = [call.library.person(text).descriptors for text in without or ()]
    if query is not None:
        queries = _vectors(query)
    elif not people:
        raise InvalidInputError("nothing is asked for: name people, or give vectors with --query FILE.npz")
    with PostgresSets(uri, table, item=item, face=face, vector=vector, distance=distance) as sets:
        hits = sets.search(
            queries,
            limit,
            candidates=candidates,
            where=_conditions(where),
            at_least=at_least,
            only=only,
            without=excluded or None,
        )
    rows = [(rank, f"{hit.score:.3f}", hit.id) for rank, hit in enumerate(hits, 1)]
    found = Rows(["", "score", "item"], rows, "no item fits", ["", "score"])
    return Result({"hits": hits}, found, status=not hits)


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
        found = json.loads(text) if text else None
    except ValueError:
        found = text
    if found is not None and not isinstance(found, dict):
        raise InvalidInputError(f"--where takes a JSON object such as '{{\"year\": 2019}}', not {text!r:.80}")
    return found
