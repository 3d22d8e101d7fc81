"""`POST /search`: the photos that contain these people."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic_core import to_json

from setnet.client import SearchAnswer
from setnet.library import Conditions, Example, Library, PhotoQuery, Ranking, display_path
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.requests import SearchQuery
from setnet.web.api.dependencies import State
from setnet.web.api.query_faces import person_of, uploads_of
from setnet.web.server.problems import Problem
from setnet.web.state.cursors import Place, digest_of
from setnet.web.state.server_state import ServerState

routes = APIRouter(tags=["search"])

MOST_HITS = 20_000  # further down nobody looks


@routes.post("/search", response_model=SearchAnswer, openapi_extra=json_schema(SearchQuery))
async def search(query: Annotated[SearchQuery, json_body(SearchQuery)], state: State) -> Response:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    A person is a saved name, a group, faces found by `POST /faces`, faces of photos in the library, images
    (base64) or descriptors, or several of these together. `cursor` of an answer brings its next page, in
    the order that was found first: no photo comes twice or is left out when the library changes meanwhile.
    """
    answer = None
    if query.cursor is not None:
        answer = await state.searching.run(_next_page, state, query, query.cursor)
    if answer is None:
        uploads = [await uploads_of(state, person) for person in (*query.people, *query.without)]
        answer = await state.searching.run(_searched, state, query, uploads)
    return Response(answer, media_type="application/json")


def _next_page(state: ServerState, query: SearchQuery, cursor: str) -> bytes | None:
    """Return a page of an answer that is kept; None when it is not."""
    digest = _digest(query)
    place = state.cursors.place_in(cursor, digest)
    with state.library.reading() as library:
        ranking = state.rankings.get(digest, place.commit, library)
        return None if ranking is None else _page(state, query, digest, library, ranking, place.offset)


def _searched(state: ServerState, query: SearchQuery, uploads: list[list[Example]]) -> bytes:
    """Return the first page, or one whose answer is not kept any more."""
    digest = _digest(query)
    place = None if query.cursor is None else state.cursors.place_in(query.cursor, digest)
    offset = 0 if place is None else place.offset
    with state.library.reading() as library:
        if place is not None and library.catalog.commit() != place.commit:
            raise Problem(
                410,
                "this answer is not kept any more, and the library has changed since: "
                "leave the cursor out to start again",
            )
        ranking = library.rank(_photo_query(state, query, uploads, offset, library), MOST_HITS)
        return _page(state, query, digest, library, ranking, offset)


def _photo_query(
    state: ServerState, query: SearchQuery, uploads: list[list[Example]], offset: int, library: Library
) -> PhotoQuery:
    people = [
        person_of(person, number, found, library)
        for number, (person, found) in enumerate(
            zip((*query.people, *query.without), uploads, strict=True), 1
        )
    ]
    return PhotoQuery(
        people[: len(query.people)],
        without=people[len(query.people) :],
        k=query.k,
        offset=offset,
        mode=query.mode,
        at_least=1 if query.at_least is None else query.at_least,
        only=query.only,
        sure=query.sure,
        min_similarity=query.min_similarity,
        totals=query.totals,
        conditions=Conditions.parse(
            query.after, query.before, query.folder, (query.min_faces, query.max_faces), query.kind
        ),
        threads=1 if state.searching.waiting > 1 else None,  # others keep the cores busy
    )


def _page(
    state: ServerState, query: SearchQuery, digest: bytes, library: Library, ranking: Ranking, offset: int
) -> bytes:
    end = offset + query.k
    answer = ranking.page(offset, query.k)
    if query.collapse:
        answer = answer.collapsed()
    cursor = None
    if ranking.has_more(end):
        cursor = state.cursors.at(Place(end, ranking.commit), digest)
        state.rankings.keep(digest, library, ranking)
        if query.cursor is not None:  # somebody reads on: what comes next is ranked meanwhile
            state.searching.spare(_prepare, state, ranking, end)
    if answer.seconds["search"]:
        state.metrics.searches.observe(answer.seconds["search"])
    return to_json(answer.to_dict(display_path) | {"cursor": cursor})


def _prepare(state: ServerState, ranking: Ranking, end: int) -> None:
    with state.library.reading():
        ranking.prepare(end)


def _digest(query: SearchQuery) -> bytes:
    return digest_of(query.model_dump_json(exclude={"cursor", "k"}))
