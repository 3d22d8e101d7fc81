"""`POST /search`: the photos that contain these people."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic_core import to_json

from setnet.errors import InvalidInputError
from setnet.library import Conditions, Example, PhotoQuery, shown
from setnet.web.api.bodies.answers import SearchAnswer
from setnet.web.api.bodies.cursor import MOST_HITS, cursor_at, digest_of, offset_in
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.requests import SearchQuery
from setnet.web.api.dependencies import State
from setnet.web.api.examples import person_of, uploads_of
from setnet.web.state.server_state import ServerState

routes = APIRouter(tags=["search"])


@routes.post("/search", response_model=SearchAnswer, openapi_extra=json_schema(SearchQuery))
async def search(query: Annotated[SearchQuery, json_body(SearchQuery)], state: State) -> Response:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    A person is a saved name, faces found by `POST /faces`, faces of photos in the library, images
    (base64) or descriptors, or several of these together. `cursor` of an answer brings its next page.
    """
    uploads = [await uploads_of(state, person) for person in (*query.people, *query.without)]
    answer = await state.searching.run(_answer, state, query, uploads)
    return Response(answer, media_type="application/json")


def _answer(state: ServerState, query: SearchQuery, uploads: list[list[Example]]) -> bytes:
    digest = digest_of(query.model_dump_json(exclude={"cursor", "k"}))
    offset = offset_in(query.cursor, digest)
    k = min(query.k, MOST_HITS - offset)
    if k <= 0:
        raise InvalidInputError(f"an answer has at most {MOST_HITS} photos: narrow the query")
    at_least = query.at_least if query.at_least is not None else (0 if query.mode == "set" else 1)
    with state.library.reading() as library:
        people = [
            person_of(person, number, found, library)
            for number, (person, found) in enumerate(
                zip((*query.people, *query.without), uploads, strict=True), 1
            )
        ]
        answer = library.find(
            PhotoQuery(
                people[: len(query.people)],
                without=people[len(query.people) :],
                k=k + 1,  # one more: is there a next page?
                offset=offset,
                mode=query.mode,
                at_least=at_least,
                only=query.only,
                conditions=Conditions.parse(
                    query.after, query.before, query.folder, (query.min_faces, query.max_faces)
                ),
                threads=1 if state.searching.waiting > 1 else None,  # others keep the cores busy
            )
        )
    state.metrics.searches.observe(answer.seconds["search"])
    more = len(answer.hits) > k and offset + k < MOST_HITS
    page = replace(answer, hits=answer.hits[:k]).to_dict(shown)
    return to_json(page | {"cursor": cursor_at(offset + k, digest) if more else None})
