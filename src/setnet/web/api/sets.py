"""`/sets`: items that are sets of vectors, for those who have no photos."""

from __future__ import annotations

import json
from dataclasses import asdict
from time import perf_counter
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError

from setnet.errors import InvalidInputError
from setnet.index import Stats
from setnet.web.api.dependencies import State, content_type, require_json
from setnet.web.api.npz import arrays_in
from setnet.web.api.set_models import ItemIds, NewItems, NewSet, SetQuery
from setnet.web.server.problems import Problem
from setnet.web.state.server_state import ServerState
from setnet.web.state.set_store import NAME

routes = APIRouter(tags=["sets"])

Name = Annotated[str, Path(pattern=NAME)]
M = TypeVar("M", bound=BaseModel)
_NPZ = ("application/x-npz", "application/zip", "application/octet-stream")
_LARGEST_UNPACKED = 1 << 30


def _body(model: type[BaseModel]) -> dict[str, Any]:
    binary = {"schema": {"type": "string", "format": "binary"}}
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    content = {"application/json": {"schema": schema}, "application/x-npz": binary}
    return {"requestBody": {"required": True, "content": content}}


@routes.get("/sets")
async def list_sets(state: State) -> Response:
    """List the sets of vectors."""
    return JSONResponse({"sets": await state.reading.run(state.sets.names)})


@routes.put("/sets/{name}", status_code=201, dependencies=[Depends(require_json)])
async def make_set(name: Name, asked: NewSet, state: State) -> Response:
    """Make an empty set."""
    options = {k: v for k, v in asked.model_dump().items() if v is not None}
    return JSONResponse(_stats(await state.writing.run(lambda: state.sets.create(name, **options))), 201)


@routes.get("/sets/{name}")
async def describe_set(name: Name, state: State) -> Response:
    """Tell what a set holds."""
    return JSONResponse(_stats(await state.reading.run(lambda: state.sets.reader(name).stats())))


@routes.delete("/sets/{name}", status_code=204)
async def delete_set(name: Name, state: State) -> Response:
    """Delete a set and everything in it."""
    await state.writing.run(state.sets.destroy, name)
    return Response(status_code=204)


@routes.post("/sets/{name}/items", openapi_extra=_body(NewItems))
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
        told = (
            [_object(str(text)) for text in arrays["attributes"].ravel()] if "attributes" in arrays else None
        )
        elements, counts = arrays["elements"], arrays["counts"]
    else:
        items = _parsed(NewItems, body, kind).items
        ids, counts = [item.id for item in items], np.array([len(item.elements) for item in items])
        rows = [vector for item in items for vector in item.elements]
        told = [item.attributes for item in items]
        if len({len(row) for row in rows}) > 1:
            raise InvalidInputError("the elements have different lengths: all must have the set's dimension")
        with np.errstate(over="ignore"):
            elements = np.array(rows, np.float32) if rows else _no_rows(state, name)
    with state.sets.writer(name) as index:
        index.add(ids, elements, counts, attributes=told)
    return len(ids)


def _no_rows(state: ServerState, name: str) -> Any:
    return np.zeros((0, state.sets.reader(name).shape.dim), np.float32)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInputError(f"attributes {text[:80]!r}: a JSON object per item is expected")
    return value


@routes.delete("/sets/{name}/items", dependencies=[Depends(require_json)])
async def delete_items(name: Name, asked: ItemIds, state: State) -> Response:
    """Delete items; an unknown id is an error, and then nothing is deleted."""
    await state.writing.run(_delete, state, name, asked.ids)
    return JSONResponse({"deleted": len(asked.ids)})


def _delete(state: ServerState, name: str, ids: list[str]) -> None:
    with state.sets.writer(name) as index:
        index.delete(ids)


@routes.post("/sets/{name}/search", openapi_extra=_body(SetQuery))
async def search_set(name: Name, request: Request, state: State) -> Response:
    """Find the items that hold most of the vectors asked for, best first.

    JSON, or an npz file with `people` (one row per vector) and optionally `k`.
    """
    body = await request.body()
    return JSONResponse(await state.searching.run(_search, state, name, body, content_type(request)))


def _search(state: ServerState, name: str, body: bytes, kind: str) -> dict[str, Any]:
    index = state.sets.reader(name)
    if kind in _NPZ:
        arrays = arrays_in(body, ("people",), ("k",), _LARGEST_UNPACKED)
        if arrays["people"].ndim != 2 or len(arrays["people"]) > 16:
            raise InvalidInputError("array 'people' must have 1 to 16 rows")
        people: Any = arrays["people"]
        k = arrays.get("k", np.array(100))
        options: dict[str, Any] = {"k": _count(k)}
    else:
        query = _parsed(SetQuery, body, kind)
        options = query.model_dump(exclude={"people", "without"})
        options["without"] = query.without or None
        people = _people(query.people)
    start = perf_counter()
    hits = index.search(people, **options)
    seconds = perf_counter() - start
    state.metrics.searches.observe(seconds)
    return {
        "hits": [
            {"id": hit.id, "score": round(hit.score, 6), "matches": [asdict(m) for m in hit.matches]}
            for hit in hits
        ],
        "searched": len(index),
        "seconds": {"search": round(seconds, 6)},
    }


def _people(people: list[Any]) -> Any:
    """Return rows, or one array of examples per person where any person has several."""
    if all(isinstance(person[0], list) is False for person in people):
        if len({len(person) for person in people}) > 1:
            raise InvalidInputError("the people's vectors have different lengths")
        return np.array(people, np.float64)
    groups = [person if isinstance(person[0], list) else [person] for person in people]
    if any(len({len(row) for row in group}) > 1 for group in groups):
        raise InvalidInputError("the examples of a person have different lengths")
    return [np.array(group, np.float64) for group in groups]


def _count(k: Any) -> int:
    if k.size != 1 or k.dtype.kind not in "iu" or not 1 <= int(k.ravel()[0]) <= 2000:
        raise InvalidInputError("array 'k' must be one whole number from 1 to 2000")
    return int(k.ravel()[0])


def _parsed(model: type[M], body: bytes, kind: str) -> M:
    if kind != "application/json":
        raise Problem(415, "send JSON ('Content-Type: application/json') or npz ('application/x-npz')")
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(str(part) for part in first["loc"]) or "body"
        status = 400 if first["type"] == "json_invalid" else 422
        raise Problem(status, f"{at}: {first['msg']}") from None


def _stats(stats: Stats) -> dict[str, Any]:
    return {
        "items": stats.items,
        "elements": stats.elements,
        "dim": stats.dim,
        "precision": stats.precision,
        "set_vectors": stats.set_vectors,
        "bytes": stats.bytes,
    }
