"""`/collect`: the questions of a run of `setnet collect`, one face at a time, and their answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import JSONResponse

from setnet.collect import Answer
from setnet.web.api.bodies.collect_bodies import (
    AnnotatorQuery,
    AnswersAnswer,
    DecisionQuery,
    NextAnswer,
)
from setnet.web.api.bodies.jpeg import Jpeg
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.dependencies import State
from setnet.web.server.problems import not_found
from setnet.web.state.annotation_desk import AnnotationDesk
from setnet.web.state.photo_files import open_below
from setnet.web.state.server_state import ServerState

routes = APIRouter(prefix="/collect", tags=["collect"])

Number = Annotated[int, Path(ge=0, le=2**31, description="The question's id")]
Annotator = Annotated[
    str | None,
    Query(min_length=1, max_length=100, description="Who answers; else who started the server"),
]
_PHOTO_SIDE = 1600
_PRIVATE = {"Cache-Control": "private, max-age=3600"}


def _desk(state: ServerState) -> AnnotationDesk:
    if state.desk is None:
        raise not_found("no run of `setnet collect` is served: start the server with --collect RUN")
    return state.desk


@routes.get("/next", response_model=NextAnswer)
async def next_question(state: State, annotator: Annotator = None) -> Response:
    """Return the next face that a person has to name, and how far the queue is."""
    desk = _desk(state)
    return JSONResponse(await state.reading.run(desk.next, annotator or desk.annotator))


@routes.post("/answers", response_model=NextAnswer, openapi_extra=json_schema(DecisionQuery))
async def store_answer(query: Annotated[DecisionQuery, json_body(DecisionQuery)], state: State) -> Response:
    """Store an answer and return the next question; the answer is on the disk by then."""
    desk = _desk(state)
    answer = Answer(query.answer, query.name)
    who = query.annotator or desk.annotator
    return JSONResponse(await state.writing.run(desk.store, who, query.question, answer))


@routes.post("/undo", response_model=NextAnswer, openapi_extra=json_schema(AnnotatorQuery))
async def undo_answer(query: Annotated[AnnotatorQuery, json_body(AnnotatorQuery)], state: State) -> Response:
    """Take back a person's latest answer; its question is asked again."""
    desk = _desk(state)
    return JSONResponse(await state.writing.run(desk.undo, query.annotator or desk.annotator))


@routes.get("/answers", response_model=AnswersAnswer)
async def list_answers(state: State) -> Response:
    """Return all answers with their times, those taken back included, and how annotators agree."""
    return JSONResponse(await state.reading.run(_desk(state).answers))


@routes.get("/questions/{number}/photo", response_class=Jpeg)
async def question_photo(number: Number, state: State) -> Response:
    """Return the photo of a question as an upright JPEG."""
    return Jpeg(await state.drawing.run(_photo, state, number), headers=_PRIVATE)


@routes.get("/questions/{number}/face", response_class=Jpeg)
async def question_face(number: Number, state: State) -> Response:
    """Return the face of a question as a small JPEG."""
    return Jpeg(await state.drawing.run(_face, state, number), headers=_PRIVATE)


def _photo(state: ServerState, number: int) -> bytes:
    desk = _desk(state)
    with open_below(desk.question(number).photo, desk.folders).file as file:
        return state.drawing.thumbnail(file, _PHOTO_SIDE)


def _face(state: ServerState, number: int) -> bytes:
    desk = _desk(state)
    question = desk.question(number)
    x0, y0, x1, y1 = question.box
    with open_below(question.photo, desk.folders).file as file:
        return state.drawing.face_picture(file, (x0, y0, x1, y1))
