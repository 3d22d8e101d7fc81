"""The page of `setnet collect annotate`: one face at a time with its photo, answered by keys.

A small server of its own, for the person at this machine: it listens on the loopback address only, and knows
no library.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, FastAPI, Query, Response
from fastapi import Path as InPath
from pydantic import Field, model_validator

from setnet.collect import AnnotationQueue, Answer, CollectRun, Question
from setnet.faces import FaceSettings
from setnet.web.files import open_below
from setnet.web.guard import BodyLimits, Guard, TokenRateLimit
from setnet.web.page import add_pages
from setnet.web.pools import ImagePool
from setnet.web.problems import Problem, install_problems
from setnet.web.requests import Jpeg, Name, Strict
from setnet.web.server import bind_socket, open_when_up, page_address, run_app
from setnet.web.settings import WebSettings

_PHOTO_SIDE = 1600
_PRIVATE = {"Cache-Control": "private, max-age=3600"}
_NumberInPath = Annotated[int, InPath(ge=0, le=2**31, description="The question's id")]


class AnnotatorQuery(Strict):
    """Whose latest answer is meant; by default that of who started the server."""

    annotator: Annotated[str | None, Field(min_length=1, max_length=100)] = None


class DecisionQuery(AnnotatorQuery):
    """What a person says of a face."""

    question: Annotated[int, Field(ge=0, le=2**31)]
    answer: Literal["name", "unknown", "drop photo"]
    name: Name | None = None

    @model_validator(mode="after")
    def _name_fits(self) -> Self:
        if (self.answer == "name") != (self.name is not None):
            raise ValueError("a name belongs to the answer 'name', and to no other")
        return self


class AnnotationSession:
    """An open queue of questions, shared by requests; answers are stored one at a time.

    Parameters
    ----------
    run
        The run's folder.
    annotator
        Who answers unless a request says otherwise.
    twice
        Share of the faces that are asked of a second person too.
    """

    def __init__(self, run: Path, annotator: str, twice: float = 0.0) -> None:
        self.annotator = annotator
        self._open = ExitStack()
        opened = CollectRun.open(run)
        self._open.enter_context(opened.locked("answers"))
        self._queue = AnnotationQueue(opened, twice)
        self._lock = threading.Lock()
        self.folders = [Path(folder) for folder in opened.settings.photos]

    def question(self, number: int) -> Question:
        """Return a question by its number."""
        if not 0 <= number < len(self._queue.questions):
            raise Problem(404, f"no question {number}")
        return self._queue.questions[number]

    def next(self, annotator: str | None) -> dict[str, Any]:
        """Return the next question for a person, and how far the queue is."""
        who = annotator or self.annotator
        with self._lock:
            return self._question_and_state(who, self._queue.next(who))

    def store(self, annotator: str | None, number: int, answer: Answer) -> dict[str, Any]:
        """Store an answer; return the next question."""
        who = annotator or self.annotator
        self.question(number)
        with self._lock:
            self._queue.answer(who, number, answer)
            return self._question_and_state(who, self._queue.next(who))

    def undo(self, annotator: str | None) -> dict[str, Any]:
        """Take back a person's latest answer; return its question, or the next if there was none."""
        who = annotator or self.annotator
        with self._lock:
            taken = self._queue.undo(who)
            return self._question_and_state(who, self._queue.next(who) if taken is None else taken)

    def _question_and_state(self, annotator: str, number: int | None) -> dict[str, Any]:
        question = None if number is None else {"id": number} | self._queue.questions[number].to_dict()
        return {"annotator": annotator, "question": question, "state": asdict(self._queue.state(annotator))}

    def close(self) -> None:
        """Let other processes add answers."""
        self._open.close()


def annotation_app(session: AnnotationSession, settings: WebSettings | None = None) -> FastAPI:
    """Return the page and the questions it asks as an ASGI app, which closes the session when it ends."""
    settings = settings or WebSettings()
    drawing = ImagePool(
        "thumbnail making", FaceSettings(), workers=2, queue=64, seconds=settings.draw_seconds
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        drawing.close()
        session.close()

    app = FastAPI(title="setnet collect", lifespan=lifespan, openapi_url=None)
    install_problems(app)
    app.include_router(_questions(session, drawing))
    add_pages(app, {"/": "annotate.html"})
    # The last added is the outermost.
    app.add_middleware(BodyLimits, settings=settings)
    app.add_middleware(Guard, settings=settings, wrong_tokens=TokenRateLimit(settings.wrong_tokens))
    return app


def _questions(session: AnnotationSession, drawing: ImagePool) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/collect")

    @routes.get("/next")
    def next_question(
        annotator: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    ) -> dict[str, Any]:
        return session.next(annotator)

    @routes.post("/answers")
    def store_answer(query: DecisionQuery) -> dict[str, Any]:
        """Store an answer and return the next question; the answer is on the disk by then."""
        return session.store(query.annotator, query.question, Answer(query.answer, query.name))

    @routes.post("/undo")
    def undo_answer(query: AnnotatorQuery) -> dict[str, Any]:
        return session.undo(query.annotator)

    @routes.get("/questions/{number}/photo")
    async def question_photo(number: _NumberInPath) -> Response:
        def draw() -> bytes:
            with open_below(session.question(number).photo, session.folders).file as file:
                return drawing.thumbnail(file, _PHOTO_SIDE)

        return Jpeg(await drawing.run(draw), headers=_PRIVATE)

    @routes.get("/questions/{number}/face")
    async def question_face(number: _NumberInPath) -> Response:
        def draw() -> bytes:
            question = session.question(number)
            x0, y0, x1, y1 = question.box
            with open_below(question.photo, session.folders).file as file:
                return drawing.face_picture(file, (x0, y0, x1, y1))

        return Jpeg(await drawing.run(draw), headers=_PRIVATE)

    return routes


def serve_annotation(
    run: Path,
    annotator: str,
    *,
    twice: float = 0.0,
    port: int = 8422,
    open_page: bool = False,
    say: Callable[[str], None],
) -> None:
    """Ask the questions of a run on a page until the server is stopped (Ctrl-C, SIGTERM)."""
    settings = WebSettings(port=port)
    listening = bind_socket(settings)
    app = annotation_app(AnnotationSession(run, annotator, twice), settings)
    address = page_address(settings.host, listening.getsockname()[1], None)
    say(f"setnet asks about the faces of {run}\n  page  {address}\n  stop  Ctrl-C")
    if open_page:
        open_when_up(address, say)
    run_app(app, listening)
