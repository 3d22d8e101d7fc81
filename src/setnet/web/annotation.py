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
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Response
from fastapi import Path as InPath
from pydantic import Field

from setnet.collect import AnnotationQueue, Answer, CollectRun, Question
from setnet.faces import FaceSettings
from setnet.web.files import open_below
from setnet.web.guard import BodyLimits, Guard, Sessions, TokenRateLimit
from setnet.web.page import add_pages
from setnet.web.pools import ImagePool
from setnet.web.problems import Problem, install_problems
from setnet.web.requests import Jpeg, Name, Strict
from setnet.web.server import bind_socket, open_when_up, page_address, run_app
from setnet.web.settings import WebSettings

_PHOTO_SIDE = 1600
_PRIVATE = {"Cache-Control": "private, max-age=3600"}
_NumberInPath = Annotated[int, InPath(ge=0, le=2**31, description="The question's id")]


class DecisionQuery(Strict):
    """What a person says of a face."""

    question: Annotated[int, Field(ge=0, le=2**31)]
    answer: Literal["name", "unknown", "drop photo"]
    name: Name | None = None


class AnnotationSession:
    """An open queue of questions, shared by requests; answers are stored one at a time.

    Parameters
    ----------
    run
        The run's folder.
    """

    def __init__(self, run: Path) -> None:
        self._open = ExitStack()
        opened = CollectRun.open(run)
        self._open.enter_context(opened.locked("answers"))
        self._queue = AnnotationQueue(opened)
        self._lock = threading.Lock()
        self.folders = [Path(folder) for folder in opened.settings.photos]

    def question(self, number: int) -> Question:
        """Return a question by its number."""
        if not 0 <= number < len(self._queue.questions):
            raise Problem(404, f"no question {number}")
        return self._queue.questions[number]

    def next(self) -> dict[str, Any]:
        """Return the next question, and how far the queue is."""
        with self._lock:
            return self._question_and_state(self._queue.next())

    def store(self, number: int, answer: Answer) -> dict[str, Any]:
        """Store an answer; return the next question."""
        self.question(number)
        with self._lock:
            self._queue.answer(number, answer)
            return self._question_and_state(self._queue.next())

    def undo(self) -> dict[str, Any]:
        """Take back the latest answer; return its question, or the next if there was none."""
        with self._lock:
            taken = self._queue.undo()
            return self._question_and_state(self._queue.next() if taken is None else taken)

    def _question_and_state(self, number: int | None) -> dict[str, Any]:
        question = None if number is None else {"id": number} | self._queue.questions[number].to_dict()
        return {"question": question, "state": asdict(self._queue.state())}

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
    wrong_tokens = TokenRateLimit(settings.wrong_tokens)
    app.add_middleware(Guard, settings=settings, wrong_tokens=wrong_tokens, sessions=Sessions())
    return app


def _questions(session: AnnotationSession, drawing: ImagePool) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/collect")

    @routes.get("/next")
    def next_question() -> dict[str, Any]:
        return session.next()

    @routes.post("/answers")
    def store_answer(query: DecisionQuery) -> dict[str, Any]:
        """Store an answer and return the next question; the answer is on the disk by then."""
        return session.store(query.question, Answer(query.answer, query.name))

    @routes.post("/undo")
    def undo_answer() -> dict[str, Any]:
        return session.undo()

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
    *,
    port: int = 8422,
    open_page: bool = False,
    say: Callable[[str], None],
) -> None:
    """Ask the questions of a run on a page until the server is stopped (Ctrl-C, SIGTERM)."""
    settings = WebSettings(port=port)
    listening = bind_socket(settings)
    app = annotation_app(AnnotationSession(run), settings)
    address = page_address(settings.host, listening.getsockname()[1], None)
    say(f"setnet asks about the faces of {run}\n  page  {address}\n  stop  Ctrl-C")
    if open_page:
        open_when_up(address, say)
    run_app(app, listening)
