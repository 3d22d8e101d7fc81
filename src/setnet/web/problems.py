"""Errors as `application/problem+json` (RFC 9457): one helpful sentence, never a traceback."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from pydantic_core import to_json
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

_KINDS: dict[type[SetNetError], tuple[int, str]] = {
    TakenError: (409, "name_taken"),  # before what it is a kind of
    InvalidInputError: (422, "invalid_input"),
    PhotoError: (422, "not_a_photo"),
    LockedError: (409, "locked"),
    NotAnIndexError: (404, "not_found"),
    ModelError: (503, "model"),
    VersionError: (503, "version"),
    StorageError: (503, "storage"),
}


# By status, where nothing says it better.
_CODES = {
    400: "bad_request",
    401: "token_needed",
    403: "refused",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    410: "gone",
    413: "too_large",
    415: "wrong_media_type",
    421: "wrong_host",
    422: "invalid_input",
    429: "too_many_tokens",
    500: "unexpected",
    503: "unavailable",
}
_OWN_CODES = (
    "busy",
    "locked",
    "model",
    "name_taken",
    "not_a_photo",
    "read_only",
    "run_under_way",
    "storage",
    "version",
)
PROBLEM_CODES = sorted({*_CODES.values(), *_OWN_CODES})


class ProblemDetails(Answer):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    code: Annotated[
        str, Field(description="For programs, one of: " + ", ".join(f"`{c}`" for c in PROBLEM_CODES))
    ]
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
    """An error with its status and sentence, and a code where the status has several meanings."""

    def __init__(
        self, status: int, detail: str, headers: Mapping[str, str] | None = None, code: str | None = None
    ) -> None:
        super().__init__(status, detail, headers)
        self.code = code


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, code: str | None = None, **more: Any
) -> Response:
    """Return an error as a response."""
    known = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body = to_json(known | {"code": code or _CODES.get(status, "error"), "detail": detail} | more)
    return Response(body, status, dict(headers or {}), "application/problem+json")


def too_busy(what: str, seconds: int = 2) -> Problem:
    """Return the error for a client that should retry later."""
    return Problem(503, f"{what}: try again in {seconds} s", {"Retry-After": str(seconds)}, "busy")


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


async def _answer_setnet_error(request: Request, error: Exception) -> Response:
    status, code = next((s for kind, s in _KINDS.items() if isinstance(error, kind)), (422, "invalid_input"))
    more = {"person": error.person} if isinstance(error, TakenError) else {}
    headers = {"Retry-After": "2"} if status == 503 else None
    return problem_response(status, _printable(str(error)), headers, code, **more)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and (page := missing_page(request)) is not None:
        return page
    detail = _SENTENCES.get(error.detail, error.detail)
    return problem_response(error.status_code, detail, error.headers, getattr(error, "code", None))


# What the framework says by itself, said better.
_SENTENCES = {
    "Not Found": "there is nothing at this address: /docs lists what there is",
    "Method Not Allowed": "this address does not take this method: /docs lists what it takes",
    "There was an error parsing the body": "the body is no valid JSON",
}


async def _answer_invalid_request(request: Request, error: Exception) -> Response:
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


async def _answer_other_error(request: Request, error: Exception) -> Response:
    return problem_response(*next(answer for kind, answer in _OTHERS.items() if isinstance(error, kind)))


async def _answer_unexpected_error(request: Request, error: Exception) -> Response:
    _LOG.exception("unexpected error at %s", request.url.path, exc_info=error)
    return problem_response(500, "something unexpected happened in the server; its log has the details")
