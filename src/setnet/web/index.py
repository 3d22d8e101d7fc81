"""`/index`, `/failures`, `/folders`, `/forget`: index runs, files that failed, folders to choose, deletion.

Forgetting deletes data about photos for good; the photos themselves are never touched.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints

from setnet.addresses import is_address
from setnet.client import Answer, Failures, Run
from setnet.errors import InvalidInputError
from setnet.library import Library
from setnet.library.creation import roots_from
from setnet.library.folder_scan import is_photo_name
from setnet.library.paths import display_path, is_below
from setnet.web.guard import client_address
from setnet.web.problems import Problem
from setnet.web.requests import State, Strict, api_router, reads, reply, writes
from setnet.web.settings import is_loopback
from setnet.web.state import ServerState

routes = api_router("index")
_LOOK_SECONDS = 0.25
_HEARTBEAT_SECONDS = 15.0
_NOT_KEPT = {"Clear-Site-Data": '"cache"'}  # the browser keeps thumbnails too
_DISKS = ("/media", "/mnt", "/run/media", "/Volumes")
_MOST_FOLDERS = 500
_MOST_ENTRIES = 20_000  # a folder with more is not counted to its end


class IndexQuery(Strict):
    """What an index run shall look at."""

    folders: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=4096)]],
        Field(max_length=100, description="Folders on the server; none: those indexed before"),
    ] = []
    prune: Annotated[
        bool, Field(description="Remove photos whose files are gone, if these are a tenth of all at most")
    ] = False
    prune_many: Annotated[bool, Field(description="With `prune`: remove them however many they are")] = False
    retry: Annotated[bool, Field(description="Look again at files that failed before")] = False


@routes.post("/index", status_code=202, response_model=Run)
async def start_index(query: IndexQuery, state: State) -> Response:
    """Start an index run over folders of this machine; `/index/events` streams its progress."""
    if any(is_address(folder) for folder in query.folders):  # a page must not make this machine call others
        raise InvalidInputError("the page indexes folders of this machine; addresses: `setnet index ADDRESS`")
    # a missing folder is an error now, not later in the run
    await state.read(lambda library: roots_from(query.folders, library.photos))
    job = state.index_job
    return reply(job.start(query.folders, query.prune, query.prune_many, query.retry).to_dict(), 202)


@routes.get("/index", response_model=Run)
async def index_state(state: State) -> Response:
    """Return the state of the latest index run."""
    return reply(state.index_job.state.to_dict())


@routes.delete("/index", response_model=Run)
async def stop_index(state: State) -> Response:
    """Stop the index run; what it found is kept, and the next run goes on from there."""
    return reply(state.index_job.stop().to_dict())


@routes.get("/index/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def index_events(
    state: State,
    once: Annotated[bool, Query(description="End the stream when no run is under way")] = False,
) -> Response:
    """Stream the state of the index run as server-sent events, one whenever it changes."""
    return StreamingResponse(
        _events(state, once),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(state: ServerState, once: bool) -> AsyncIterator[str]:
    sent, silent = -1, 0.0
    while not state.stopping.is_set():
        job = state.index_job.state
        if job.version != sent:
            sent, silent = job.version, 0.0
            yield f"event: index\nid: {job.version}\ndata: {json.dumps(job.to_dict())}\n\n"
        elif silent >= _HEARTBEAT_SECONDS:
            silent = 0.0
            yield ": still here\n\n"
        if once and job.state not in ("running", "stopping"):
            return
        await asyncio.sleep(_LOOK_SECONDS)
        silent += _LOOK_SECONDS


@routes.get("/failures", response_model=Failures)
@reads
def list_failures(
    library: Library,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    cursor: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """List the files that could not be read, with the reasons."""
    found = library.photos.failures()
    part = [failure.to_dict(display_path) for failure in found[cursor : cursor + limit]]
    following = str(cursor + limit) if cursor + limit < len(found) else None
    return reply({"failures": part, "total": len(found), "cursor": following})


class Folder(Answer):
    """A folder of the server's machine."""

    path: str
    name: str


class Folders(Answer):
    """The folders in a folder, and how many photos lie in it directly."""

    path: Annotated[str | None, Field(description="Null in the list of places to begin")]
    parent: str | None
    pictures: Annotated[str | None, Field(description="In that list: where the user's photos usually are")]
    folders: list[Folder]
    photos: int
    has_more: Annotated[bool, Field(description="Not all of it is listed or counted")]


@routes.get("/folders")
async def list_folders(
    request: Request,
    state: State,
    path: Annotated[str | None, Query(max_length=4096, description="None: where to begin")] = None,
) -> Folders:
    """List the folders in a folder, to choose one for an index run.

    Only for requests from this machine, and only below the home folder and mounted disks.
    """
    if state.settings.behind_proxy or not is_loopback(client_address(request.scope)):
        raise Problem(403, "folders are listed on the machine of the server only: type the path instead")
    return await state.reading.run(_list_folders, path)


def _list_folders(path: str | None) -> Folders:
    """Return the folders in a folder, or the home folder and mounted disks, as far as they are there."""
    roots = [os.path.realpath(root) for root in (Path.home(), *map(Path, _DISKS)) if root.is_dir()]
    if path is None:
        pictures = None
        with suppress(Problem):
            pictures = _resolve_below(platformdirs.user_pictures_dir(), roots)
        return _folders_answer(None, None, roots, pictures if os.path.isdir(pictures or "") else None)
    real = _resolve_below(path, roots)
    folders: list[str] = []
    photos = seen = 0
    try:
        with os.scandir(real) as entries:
            for seen, entry in enumerate(entries, 1):
                if seen > _MOST_ENTRIES:
                    break
                if _is_listed(entry, roots):
                    folders.append(entry.path)
                elif is_photo_name(os.fsencode(entry.name)):
                    photos += 1
    except NotADirectoryError:
        raise Problem(404, "this is no folder") from None
    except FileNotFoundError:
        raise Problem(404, "this folder is not there any more") from None
    except OSError as error:
        raise Problem(403, f"this folder cannot be opened: {error.strerror}") from None
    folders.sort(key=lambda folder: os.path.basename(folder).casefold())
    has_more = seen > _MOST_ENTRIES or len(folders) > _MOST_FOLDERS
    parent = None if real in roots else os.path.dirname(real)
    return _folders_answer(real, parent, folders[:_MOST_FOLDERS], None, photos, has_more)


def _folders_answer(
    path: str | None,
    parent: str | None,
    folders: Sequence[str],
    pictures: str | None,
    photos: int = 0,
    has_more: bool = False,
) -> Folders:
    named = [Folder(path=place, name=os.path.basename(place) or place) for place in folders]
    return Folders(
        path=path, parent=parent, pictures=pictures, folders=named, photos=photos, has_more=has_more
    )


def _resolve_below(path: str, roots: Sequence[str]) -> str:
    """Return where a folder really is; refuse what links lead out of the roots."""
    try:
        real = os.path.realpath(path) if os.path.isabs(path) else ""
    except (OSError, ValueError):  # a null character, or a name that no file can have
        real = ""
    if not any(is_below(os.fsencode(real), os.fsencode(root)) for root in roots):
        raise Problem(403, f"only folders below {', '.join(roots)} are listed: type the path of another one")
    return real


def _is_listed(entry: os.DirEntry[str], roots: Sequence[str]) -> bool:
    """Tell whether an entry is a folder to show: not hidden, with a name that JSON can hold, inside."""
    if entry.name.startswith(".") or not entry.name.isprintable():
        return False
    with suppress(OSError, Problem):
        return entry.is_dir() and bool(not entry.is_symlink() or _resolve_below(entry.path, roots))
    return False


class FolderQuery(Strict):
    """A folder whose photos shall be forgotten."""

    folder: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class ForgetQuery(Strict):
    """Forgetting everything needs these very words."""

    confirm: Literal["forget everything"]


class Forgotten(Answer):
    """How many photos' data was deleted."""

    photos: int


@routes.post("/forget/folder")
@writes
def forget_folder(library: Library, query: FolderQuery, state: State, response: Response) -> Forgotten:
    """Delete all data about the photos in a folder."""
    response.headers.update(_NOT_KEPT)
    state.index_job.check_idle("stop it first")
    photos = library.forget([query.folder])
    state.rankings.clear()
    return Forgotten(photos=photos)


@routes.post("/forget/everything")
async def forget_everything(query: ForgetQuery, state: State, response: Response) -> Forgotten:
    """Delete the whole library: faces, people, thumbnails."""
    response.headers.update(_NOT_KEPT)
    return Forgotten(photos=await state.writing.run(state.forget_everything))
