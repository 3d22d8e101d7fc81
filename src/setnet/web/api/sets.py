"""`/sets`: items that are sets of vectors, for those who have no photos."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse

from setnet.client import (
    AddedAnswer,
    DeletedAnswer,
    SetAnswer,
    SetHitsAnswer,
    SetsAnswer,
)
from setnet.errors import InvalidInputError
from setnet.index import QueryLike, SearchOptions
from setnet.web.api.bodies.json_body import json_body, json_schema, parsed
from setnet.web.api.bodies.npz import arrays_in
from setnet.web.api.bodies.set_requests import ItemIds, NewItems, NewSet, SetQuery
from setnet.web.api.dependencies import State, content_type
from setnet.web.server.problems import Problem, too_large
from setnet.web.state.server_state import ServerState
from setnet.web.state.set_store import NAME

routes = APIRouter(tags=["sets"])

Name = Annotated[str, Path(pattern=NAME)]
_NPZ = ("application/x-npz", "application/zip", "application/octet-stream")
_LARGEST_UNPACKED = 1 << 30


@routes.get("/sets", response_model=SetsAnswer)
async def list_sets(state: State) -> Response:
    """List the sets of vectors."""
    return JSONResponse({"sets": await state.reading.run(state.sets.names)})


@routes.put("/sets/{name}", status_code=201, response_model=SetAnswer, openapi_extra=json_schema(NewSet))
async def make_set(name: Name, new: Annotated[NewSet, json_body(NewSet)], state: State) -> Response:
    """Make an empty set."""
    options = {k: v for k, v in new.model_dump().items() if v is not None}
    stats = await state.writing.run(lambda: state.sets.create(name, **options))
    return JSONResponse(stats.to_dict(), 201)


@routes.get("/sets/{name}", response_model=SetAnswer)
async def describe_set(name: Name, state: State) -> Response:
    """Describe what a set holds."""
    stats = await state.reading.run(lambda: state.sets.reader(name).stats())
    return JSONResponse(stats.to_dict())


@routes.delete("/sets/{name}", status_code=204)
async def delete_set(name: Name, state: State) -> Response:
    """Delete a set and everything in it."""
    await state.writing.run(state.sets.destroy, name)
    return Response(status_code=204)


@routes.post("/sets/{name}/items", response_model=AddedAnswer, openapi_extra=json_schema(NewItems, _NPZ[0]))
async def add_items(name: Name, request: Request, state: State) -> Response:
    """Add items, or replace those with the same id: all of them, or on any error none.

    JSON, or an npz file with `ids`, `elements` (all items' rows, one item after another), `counts` (rows
    per item) and optionally `attributes` (a JSON object per item, as text).
    """
    added = await state.writing.run(_add, state, name, await request.body(), content_type(request))
    return JSONResponse({"added": added})


def _add(state: ServerState, name: str, body: bytes, kind: str) -> int:
    if kind in _NPZ:
        arrays = arrays_in(body, ("ids", "elements", "counts"), ("attributes",), _LARGEST_UNPACKED)
        ids = [str(i) for i in arrays["ids"].ravel()]
        texts = arrays.get("attributes")
        attributes = None if texts is None else [_object(str(text)) for text in texts.ravel()]
        elements, counts = arrays["elements"], arrays["counts"]
    else:
        _require_json(kind)
        if len(body) > (most := state.settings.max_items_json):
            raise Problem(413, f"{too_large(most)} as JSON: send npz, or fewer items at a time")
        items = parsed(NewItems, body).items
        ids, counts = [item.id for item in items], np.array([len(item.elements) for item in items])
        rows = [vector for item in items for vector in item.elements]
        attributes = [item.attributes for item in items]
        if len({len(row) for row in rows}) > 1:
            raise InvalidInputError("the elements have different lengths: all must have the set's dimension")
        with np.errstate(over="ignore"):
            elements = np.array(rows or np.zeros((0, state.sets.reader(name).shape.dim)), np.float32)
    with state.sets.writer(name) as index:
        index.add(ids, elements, counts, attributes=attributes)
    return len(ids)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInputError(f"attributes {text[:80]!r}: a JSON object per item is expected")
    return value


@routes.delete("/sets/{name}/items", response_model=DeletedAnswer, openapi_extra=json_schema(ItemIds))
async def delete_items(name: Name, items: Annotated[ItemIds, json_body(ItemIds)], state: State) -> Response:
    """Delete items; an unknown id is an error, and then nothing is deleted."""
    await state.writing.run(_delete, state, name, items.ids)
    return JSONResponse({"deleted": len(items.ids)})


def _delete(state: ServerState, name: str, ids: list[str]) -> None:
    with state.sets.writer(name) as index:
        index.delete(ids)


@routes.post(
    "/sets/{name}/search", response_model=SetHitsAnswer, openapi_extra=json_schema(SetQuery, _NPZ[0])
)
async def search_set(name: Name, request: Request, state: State) -> Response:
    """Find the items that hold most of the query's elements, best first.

    JSON, or an npz file with `query` (one row per query element) and optionally `k`.
    """
    body = await request.body()
    return JSONResponse(await state.searching.run(_search, state, name, body, content_type(request)))


def _search(state: ServerState, name: str, body: bytes, kind: str) -> dict[str, Any]:
    index = state.sets.reader(name)
    query, options = _packed_query(body) if kind in _NPZ else _json_query(body, kind)
    start = perf_counter()
    hits = index.answer([query], options)[0]
    seconds = perf_counter() - start
    state.metrics.searches.observe(seconds)
    return {
        "hits": [hit.to_dict() for hit in hits],
        "searched": len(index),
        "seconds": {"search": round(seconds, 6)},
    }


def _json_query(body: bytes, kind: str) -> tuple[QueryLike, SearchOptions]:
    """Return one array of examples per query element, and the options."""
    _require_json(kind)
    given = parsed(SetQuery, body)
    groups = [element if isinstance(element[0], list) else [element] for element in given.query]
    if any(len({len(row) for row in group}) > 1 for group in groups):
        raise InvalidInputError("the examples of a query element have different lengths")
    options = given.model_dump(exclude={"query"}) | {"without": given.without or None}
    return [np.array(group, np.float64) for group in groups], SearchOptions(**options)


def _packed_query(body: bytes) -> tuple[QueryLike, SearchOptions]:
    arrays = arrays_in(body, (), ("query", "people", "k"), _LARGEST_UNPACKED)
    query = arrays.get("query", arrays.get("people"))  # 'people' is the deprecated name
    if query is None or query.ndim != 2 or len(query) > 16:
        raise InvalidInputError("the npz file needs an array 'query' of 1 to 16 rows")
    return query, SearchOptions(k=_count(arrays["k"]) if "k" in arrays else 100)


def _count(k: Any) -> int:
    if k.size != 1 or k.dtype.kind not in "iu" or not 1 <= int(k.ravel()[0]) <= 2000:
        raise InvalidInputError("array 'k' must be one whole number from 1 to 2000")
    return int(k.ravel()[0])


def _require_json(kind: str) -> None:
    if kind != "application/json":
        raise Problem(415, "send JSON ('Content-Type: application/json') or npz ('application/x-npz')")
