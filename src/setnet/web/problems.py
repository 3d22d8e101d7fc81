"""Errors as `application/problem+json` (RFC 9457): one helpful sentence, never a traceback."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from setnet.client import Answer
from setnet.errors import (
    InvalidInputError,
    LockedError,
    ModelError,
    NotAnIndexError,
    PhotoError,
    SetNetError,
    StorageError,
    TakenError,
    VersionError,
)
from setnet.library import Person
from setnet.web.page import missing_page

_LOG = logging.getLogger("setnet.web")

_STATUS: dict[type[SetNetError], int] = {
    TakenError: 409,  # before what it is a kind of
    InvalidInputError: 422,
    PhotoError: 422,
    LockedError: 409,
    NotAnIndexError: 404,
    ModelError: 503,
    StorageError: 503,
    VersionError: 503,
}


class ProblemDetails(Answer):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, Any]] | None = None
    person: Annotated[Person | None, Field(description="With 409, where a name is taken: whose it is")] = None


SCHEMAS = "#/components/schemas/"
# By reference: as a model, every route would build a validator of it per status, most of a server's start.
_PROBLEM = {"application/problem+json": {"schema": {"$ref": f"{SCHEMAS}{ProblemDetails.__name__}"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"content": _PROBLEM, "description": text}
    for status, text in {
        400: "The body is not what it says it is",
        401: "A token is needed",
        403: "Refused",
        404: "Not there",
        409: "Not now",
        410: "Not kept any more",
        413: "Too large",
        415: "Another kind of body is expected",
        422: "Something in the request does not fit",
        429: "Too many wrong tokens",
        503: "Too busy, or the library is gone",
    }.items()
}


class Problem(HTTPException):
    """An error with its status and sentence."""


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """Return an error as a response."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(body | more, status, dict(headers or {}), "application/problem+json")


def too_busy(what: str, seconds: int = 2) -> Problem:
    """Return the error for a client that should retry later."""
    return Problem(503, f"{what}: try again in {seconds} s", {"Retry-After": str(seconds)})


def too_large(limit: int) -> str:
    """Return the sentence about a body of more than `limit` bytes."""
    size = f"{limit / 1e6:.0f} MB" if limit >= 1e6 else f"{limit} bytes"
    return f"the body is larger than the {size} this address takes"


def install_problems(app: FastAPI) -> None:
    """Let every error of the app leave as problem+json."""
    app.add_exception_handler(SetNetError, _answer_setnet_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid_request)
    for kind in _OTHERS:
        app.add_exception_handler(kind, _answer_other_error)
    app.add_exception_handler(Exception, _answer_unexpected_error)


async def _answer_setnet_error(request: Request, error: Exception) -> JSONResponse:
    status = next((s for kind, s in _STATUS.items() if isinstance(error, kind)), 422)
    more = {"person": error.person} if isinstance(error, TakenError) else {}
    return problem_response(
        status, _printable(str(error)), {"Retry-After": "2"} if status == 503 else None, **more
    )


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and (page := missing_page(request)) is not None:
        return page
    return problem_response(error.status_code, _SENTENCES.get(error.detail, error.detail), error.headers)


# What the framework says by itself, said better.
_SENTENCES = {
    "Not Found": "there is nothing at this address: /docs lists what there is",
    "Method Not Allowed": "this address does not take this method: /docs lists what it takes",
    "There was an error parsing the body": "the body is no valid JSON",
}


async def _answer_invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    faults = [_fault(e) for e in error.errors()[:20]]
    if any(e["type"] == "json_invalid" for e in error.errors()):
        return problem_response(
            400, f"the body is no valid JSON: {_printable(str(error.errors()[0]['ctx']['error']))}"
        )
    first = f"{faults[0]['at']}: {faults[0]['message']}" if faults else "the request does not fit"
    return problem_response(422, _printable(first), errors=faults)


def _fault(error: Mapping[str, Any]) -> dict[str, str]:
    at = ".".join(str(part) for part in error["loc"]) or "body"
    return {"at": _printable(at)[:200], "message": _printable(str(error["msg"]))[:500]}


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


_OTHERS: dict[type[Exception], tuple[int, str, dict[str, str]]] = {
    ClientDisconnect: (400, "the client went away before its request was complete", {}),
    UnicodeError: (422, "a text in the request is no valid Unicode (it has half of a surrogate pair)", {}),
    MemoryError: (503, "not enough memory for this request just now", {"Retry-After": "10"}),
}


async def _answer_other_error(request: Request, error: Exception) -> JSONResponse:
    return problem_response(*next(answer for kind, answer in _OTHERS.items() if isinstance(error, kind)))


async def _answer_unexpected_error(request: Request, error: Exception) -> JSONResponse:
    _LOG.exception("unexpected error at %s", request.url.path, exc_info=error)
    return problem_response(500, "something unexpected happened in the server; its log has the details")
