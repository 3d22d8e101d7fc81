"""Requests made up from the API's own description, and then changed; the app is called in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from setnet.library import Library
from setnet.web import WebSettings, create_app
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import json_bytes, junk, mutated_bytes, mutated_json
from tests.fuzz.openapi import sample
from tests.fuzz.synthetic_library import fill_library
from tests.fuzz.target import Function
from tests.fuzz.targets.photo_files import damaged_photo, photos

SECONDS = 60.0  # of waiting for an answer: processor time has a tighter limit
TOKEN = "a token for these tests"
SESSION = "a-session-of-these-tests"
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "get", "")
TEXTS = ["Anna", "vectors", "1", "2", "2019", "2019-07", "../..", "%2e%2e", "é", "a/b", "exact", "\0", "0"]
HEADERS = [
    (b"host", [b"localhost", b"127.0.0.1:8422", b"[::1]", b"example.org", b""]),
    (b"content-type", [b"application/json", b"application/x-npz", b"image/jpeg", b"text/plain",
                       b"multipart/form-data; boundary=x", b"application/json; charset=utf-16"]),
    (b"content-length", [b"0", b"10", b"-1", b"99999999999", b"x"]),
    (b"origin", [b"http://localhost", b"https://example.org", b"null", b"http://[", b""]),
    (b"sec-fetch-site", [b"cross-site", b"same-origin", b"none"]),
    (b"authorization", [b"Bearer " + TOKEN.encode(), b"Bearer", b"Basic eA==", b"bearer \xff"]),
    (b"cookie", [b"setnet-session=" + SESSION.encode(), b"a=b; ; =; x", b'setnet-session="\\']),
    (b"x-forwarded-for", [b"1.2.3.4", b"::1, x", b","]),
    (b"x-forwarded-proto", [b"https", b"http,https", b"x"]),
    (b"range", [b"bytes=0-1", b"bytes=5-1", b"bytes=-1", b"x"]),
    (b"if-none-match", [b"*", b'"x"']),
    (b"access-control-request-method", [b"PUT", b"x"]),
    (b"accept-encoding", [b"gzip", b"*;q=0"]),
]  # fmt: skip


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that sends one to three requests to a server with or without a token."""
    server = Server(folder)
    loop = asyncio.new_event_loop()
    try:

        def run(data: bytes) -> None:
            choices = Choices(data)
            for _ in range(choices.pick((1, 1, 1, 3))):
                request = server.request(choices)
                loop.run_until_complete(asyncio.wait_for(server.answer(request, choices), SECONDS))
            server.tidy()

        yield run
    finally:
        for app in server.apps:
            loop.run_until_complete(app.state.server.close())
        loop.close()


@dataclass
class Request:
    """A request before it is sent; `body` comes in parts."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: list[bytes] = field(default_factory=list)

    @property
    def scope(self) -> dict[str, Any]:
        raw = quote(self.path, safe="/%~!$&'()*+,;=:@").encode()
        return {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": self.method, "path": unquote(raw.decode()), "raw_path": raw, "root_path": "",
            "query_string": self.query, "headers": self.headers, "client": ("127.0.0.1", 5000),
            "server": ("127.0.0.1", 8422), "state": {},
        }  # fmt: skip


class Server:
    """Two apps over one small library, and the requests that their description allows."""

    def __init__(self, folder: Path) -> None:
        self._photos = folder / "photos"
        self._photos.mkdir()
        self._images = photos()
        library = folder / "library"
        with Library.create(library) as made:
            fill_library(made, self._photos, self._images)
        guarded = WebSettings(
            token=TOKEN, behind_proxy=True, cors=("https://example.org",), wrong_tokens=1 << 30
        )
        self.apps = [create_app(library, s) for s in (None, guarded)]
        # known to every input, and not over after the first that signs out
        self.apps[1].state.server.sessions.has = lambda session: session == SESSION
        for app in self.apps:  # a run would read whatever folders of this machine a request names
            job = app.state.server.index_job
            job._run = lambda folders, prune, retry, job=job: job._change(state="done")
        description = self.apps[0].openapi()
        self._components = description["components"]["schemas"]
        self._operations = [
            (method, path, operation)
            for path, operations in description["paths"].items()
            for method, operation in operations.items()
        ]
        self._texts = [*TEXTS, str(self._photos)]
        self._count = 0

    # -- requests ------------------------------------------------------------------------------------

    def request(self, choices: Choices) -> Request:
        """Return a request that the description allows, with some changes."""
        method, path, operation = choices.pick(self._operations)
        query = []
        for parameter in operation.get("parameters", ()):
            value = self._value(choices, parameter["schema"])
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", quote(value, safe=""))
            elif choices.below(2):
                query.append(f"{parameter['name']}={quote(value, safe='')}")
        content = operation.get("requestBody", {}).get("content", {})
        kind = choices.pick(sorted(content)) if content else ""
        headers = [(b"host", b"localhost")]
        body = self._body(choices, kind, content.get(kind, {}).get("schema", {})) if kind else b""
        if kind:
            headers.append((b"content-type", kind.replace("*", "png").encode()))
        request = Request(method.upper(), path, "&".join(query).encode(), headers, [body])
        for _ in range(choices.pick((0, 0, 1, 2))):
            self._change(choices, request)
        return request

    def _value(self, choices: Choices, schema: dict[str, Any]) -> str:
        if choices.below(3):
            return str(choices.pick(self._texts))
        value = sample(choices, schema, self._components, self._texts)
        return "".join(c for c in str(value) if not "\ud800" <= c <= "\udfff") or "x"

    def _body(self, choices: Choices, kind: str, schema: dict[str, Any]) -> bytes:
        if "json" not in kind:
            return damaged_photo(choices, self._images)
        value = sample(choices, schema, self._components, self._texts)
        if choices.below(2):
            value = mutated_json(choices, value, [*self._texts, 1, 0.5, [0.5] * 128])
        text = json_bytes(value)
        return mutated_bytes(choices, text) if choices.once_in(10) else text

    def _change(self, choices: Choices, request: Request) -> None:
        match choices.below(6):
            case 0:
                request.method = choices.pick(METHODS)
            case 1:
                path = mutated_bytes(choices, request.path.encode(), [b"/", b"..", b"%2f", b"%00", b"//"])
                request.path = "/" + path.decode("latin-1").lstrip("/")
            case 2:
                pairs = mutated_bytes(choices, request.query, [b"&", b"=", b"%ff", b"limit=", b"size=", b"+"])
                request.query = pairs
            case 3 | 4:
                name, values = choices.pick(HEADERS)
                value = choices.pick(values)
                if choices.once_in(4):
                    value = bytes(b for b in mutated_bytes(choices, value) if b >= 32)
                if choices.below(3):
                    request.headers = [pair for pair in request.headers if pair[0] != name]
                request.headers.append((name, value))
            case _:
                whole = b"".join(request.body)
                if choices.once_in(3):
                    whole = str(junk(choices)).encode("utf-8", "replace")
                at = choices.below(len(whole) + 1)
                request.body = [whole[:at], whole[at:]]

    # -- answers -------------------------------------------------------------------------------------

    async def answer(self, request: Request, choices: Choices) -> None:
        """Send a request, and look at the answer."""
        parts = list(request.body)
        is_cut = choices.once_in(30)
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not parts or (is_cut and len(parts) == 1):
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        app = self.apps[0] if choices.below(4) else self.apps[1]
        if app is self.apps[1] and choices.below(4):
            request.headers.append((b"x-setnet-token", TOKEN.encode()))
        await app(request.scope, receive, send)
        starts = [message for message in sent if message["type"] == "http.response.start"]
        assert len(starts) == 1 or is_cut, f"{len(starts)} answers to one request"
        if starts:
            data = b"".join(message.get("body", b"") for message in sent)
            _examine(request, starts[0]["status"], starts[0]["headers"], data)

    def tidy(self) -> None:
        """Now and then bring back what requests deleted, and delete what they made."""
        self._count += 1
        if self._count % 200:
            return
        with self.apps[0].state.server.library.reading() as library:
            for person in list(library.people):
                library.people.remove(person.name)
            fill_library(library, self._photos, self._images)


def _examine(request: Request, status: int, headers: list[tuple[bytes, bytes]], data: bytes) -> None:
    what = f"{request.method} {request.path!r}: {status} {data[:200]!r}"
    assert status < 500, what
    for name, value in headers:
        assert not set(name + value) & set(b"\r\n\0"), f"{what}: header {name!r} is {value!r}"
    kind = dict(headers).get(b"content-type", b"")
    if b"json" in kind and request.method != "HEAD" and data:
        answer = json.loads(data)
        assert status < 400 or answer["detail"], what
    assert status < 400 or b"Traceback" not in data, what
