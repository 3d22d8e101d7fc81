"""Requests to the server, and its answers as typed values or as errors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from setnet.client.answers.base_answer import Answer
from setnet.client.server_error import ServerError

T = TypeVar("T", bound=Answer)


class Connection:
    """One server; connections are kept open between requests."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=f"{url.rstrip('/')}/api/v1", headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(
        self,
        answer: type[T],
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> T:
        """Send a request, with JSON or bytes as its body, and return its answer."""
        return answer.model_validate(self.send(method, path, body, params).json())

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """Send a request; what the server refuses is raised."""
        given: dict[str, Any] = {}
        if isinstance(body, bytes):
            given = {"content": body, "headers": {"Content-Type": "application/octet-stream"}}
        elif body is not None:
            given = {"json": {name: value for name, value in body.items() if value is not None}}
        known = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            response = self._http.request(method, path, params=known, **given)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        return _accepted(response)

    def download(self, path: str, place: str | os.PathLike[str]) -> Path:
        """Write what an address holds to a file, whole or not at all, and return its path."""
        place = Path(place)
        part = place.with_name(f".{place.name}.part")
        try:
            with self._http.stream("GET", path) as response, part.open("wb") as file:
                if response.is_error:
                    response.read()
                for piece in _accepted(response).iter_bytes():
                    file.write(piece)
            part.replace(place)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        finally:
            part.unlink(missing_ok=True)
        return place

    def _unreachable(self, error: httpx.HTTPError) -> ServerError:
        return ServerError(f"no answer from {self._http.base_url.copy_with(path='/')}: {error}")


def _accepted(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    try:
        detail = str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = response.text[:200] or response.reason_phrase
    raise ServerError(detail, response.status_code)
