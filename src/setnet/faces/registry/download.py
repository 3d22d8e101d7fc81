"""Downloads a model's files from their URLs: on request only, resumable, with checked hashes."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from setnet.errors import ModelError
from setnet.faces.registry.entry import ModelEntry, ModelFile
from setnet.faces.registry.file_hash import sha256_of
from setnet.faces.registry.models import model_entries, model_paths, place_of

_CHUNK = 1 << 20
_PATIENCE_SECONDS = 60


def download_model(name: str, tell: Callable[[str], None] = print) -> dict[str, Path]:
    """Download the missing files of a model; return its files by role.

    An interrupted download is resumed. A file gets its name only when its SHA-256 is right.

    Parameters
    ----------
    name
        A model of the registry.
    tell
        Is called with the licence before anything is fetched, and then with each step.

    Raises
    ------
    ModelError
        When the model is unknown, the server does not answer or sends another file.
    """
    entry = model_entries().get(name)
    if entry is None:
        raise ModelError(f"unknown model {name!r}: `setnet models` lists what is known")
    tell(f"{name}: licence {entry.licence}")
    for file in entry.files:
        path = place_of(entry, file)
        if file.url is not None and path is not None and not path.is_file():
            _fetch(entry, file, path, tell)
    return model_paths(entry)


def _fetch(entry: ModelEntry, file: ModelFile, path: Path, tell: Callable[[str], None]) -> None:
    url = str(file.url)
    if not url.startswith(("https://", "http://")):
        raise ModelError(f"model {entry.name!r}: {url} is not an http(s) URL; use `path` for local files")
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tell(f"{entry.name}: {url} -> {path}")
        _receive(url, part)
    except (OSError, HTTPException) as error:  # URLError and timeouts are OSErrors
        raise ModelError(
            f"model {entry.name!r}: {url} could not be fetched ({error}); try again to resume from "
            f"{part.stat().st_size if part.exists() else 0} bytes"
        ) from error
    if (actual := sha256_of(part)) != file.sha256:
        part.unlink()
        raise ModelError(
            f"model {entry.name!r}: {url} sent another file: SHA-256 {actual}, expected {file.sha256}; "
            "it was deleted"
        )
    os.replace(part, path)


def _receive(url: str, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url)  # noqa: S310 - the scheme was checked
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS)  # noqa: S310
    except urllib.error.HTTPError as error:
        if have and error.code == 416:  # nothing is missing: the hash decides
            return
        raise
    with answer:
        resumed = answer.status == 206
        expected = int(answer.headers.get("Content-Length") or -1)
        got = 0
        with part.open("ab" if resumed else "wb") as out:
            while chunk := answer.read(_CHUNK):
                out.write(chunk)
                got += len(chunk)
        if 0 <= got < expected:
            raise ConnectionError(f"the connection ended {expected - got} bytes early")
